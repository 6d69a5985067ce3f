import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { demoFilePath } from '../../src/config.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { checkout, folder, run } from './tools.ts';

// In this folder npx finds the generators; it is not to look for them elsewhere.
const place = join(folder, 'generated/start');

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
});
afterAll(() => app.close());

it('every command of docs/start.md works when it is pasted', async () => {
  const page = readFileSync(join(checkout, 'docs/start.md'), 'utf8');
  const [prelude = '', ...blocks] = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  const settings = prelude.replace('http://localhost:4000', app.baseUrl).replace('$PWD/.portico/demo.json', demoFilePath(app.config));
  const commands = blocks.flatMap((block) => block.trim().split('\n'));
  expect(commands).toHaveLength(7);
  const outputs: string[] = [];
  for (const command of commands) {
    const { code, out, err } = await run('bash', ['-c', `${settings}\n${command}`], { npm_config_offline: 'true' }, place);
    expect(code, command + out + err).toBe(0);
    outputs.push(out);
  }
  const told = outputs.flatMap((text) => (text.startsWith('{') ? [JSON.parse(text)] : []));
  expect(told).toEqual([
    expect.objectContaining({ count: expect.any(Number), results: expect.any(Array) }),
    expect.objectContaining({ page_size: 3, results: expect.any(Array) }),
    expect.objectContaining({ name: 'Databases' }),
    { marked: 50, unread_count: 0 },
    { ticket: expect.any(String), path: `${app.projectPath}/notifications/ws`, expires_in: 30 },
  ]);
  for (const name of ['portico.graphql', 'v1.ts']) expect(existsSync(join(place, name)), name).toBe(true);
});
