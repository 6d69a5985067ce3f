import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

/** MiB of the heap that are still needed. */
async function measureHeap(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  collect();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

it.each([
  ['with errors', (number: number, field: number) => `nothing${number}x${field}`],
  ['without', (number: number, field: number) => `a${number % 40}x${field}: __typename`],
  ['that cannot be parsed', (number: number, field: number) => `x${number}x${field}: {`],
])('new documents %s do not fill the memory', async (_what, field) => {
  const send = async (number: number) => {
    const fields = Array.from({ length: 45 }, (_, index) => field(number, index));
    const padding = Array.from({ length: 300 }, () => '__typename');
    // The number stands in a comment too, so that no two texts are the same.
    return app.graphql(`# ${number}\n{ ${[...fields, ...padding].join(' ')} }`);
  };
  for (let number = 0; number < 20; number += 1) await send(number);
  const before = await measureHeap();
  for (let number = 20; number < 520; number += 1) await send(number);
  expect((await measureHeap()) - before).toBeLessThan(45);
});
