import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeDashboardFile } from '../../clients/typescript/src/cli/dashboard-file.ts';
import { follow } from '../../clients/typescript/src/cli/follow.ts';
import type { Session } from '../../clients/typescript/src/cli/session.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portico-files-'));
  writeFileSync(join(folder, 'private'), 'private');
  // What another user may have put into a folder that is open to them.
  symlinkSync('private', join(folder, `.portico.${process.pid}`));
});
afterEach(() => rmSync(folder, { recursive: true }));

const read = (name: string) => readFileSync(join(folder, name), 'utf8');

test('a dashboard is written to its file, and through no link', async () => {
  const dashboard = { id: 'x', name: 'x', version: 2, text: '{"id":"x"}', content: {} };
  await writeDashboardFile(join(folder, 'x.json'), dashboard);
  expect(JSON.parse(read('x.json'))).toMatchObject({ version: 2, id: 'x' });
  expect(read('private')).toBe('private');
  expect(readdirSync(folder)).toHaveLength(3);
});

test('a cursor is written to its file, and through no link', async () => {
  const session = {
    project: async () => ({ id: 'x', name: 'x' }),
    async feed({ store }: Parameters<Session['feed']>[0]) {
      await store?.save(7);
      await store?.save(8);
      return [];
    },
  };
  await follow(session as unknown as Session, { cursor: join(folder, 'cursor') });
  expect(read('cursor')).toBe('8\n');
  expect((statSync(join(folder, 'cursor')).mode & 0o777).toString(8)).toBe((0o666 & ~process.umask()).toString(8));
  expect(read('private')).toBe('private');
  expect(readdirSync(folder)).toHaveLength(3);
});

test('a file that cannot be written leaves no draft', async () => {
  const dashboard = { id: 'x', name: 'x', version: 2, text: '{"id":"x"}', content: {} };
  mkdirSync(join(folder, 'taken'));
  await expect(writeDashboardFile(join(folder, 'taken'), dashboard)).rejects.toThrow('EISDIR');
  expect(readdirSync(folder)).toHaveLength(3);
});
