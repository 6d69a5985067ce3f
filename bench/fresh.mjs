// The latency of the first requests of a replica that has just become ready, compared with the same replica when warm.
import { setTimeout as sleep } from 'node:timers/promises';
import { graphqlOperations } from './graphql.mjs';
import { CONNECTIONS, drive, median, mix, percentilesOf } from './load.mjs';
import { pace } from './pace.mjs';
import { restOperations } from './rest.mjs';
import { start } from './servers.mjs';

const ROUNDS = 3;
const REQUESTS = 1_000;
const RATE = 300;
const WARM_SECONDS = 4;

/** @param {import('./main.mjs').Bench} bench @returns {Promise<{fresh: number, warm: number}>} p99 of a thousand requests, in milliseconds */
export async function measureFresh({ databaseUrl, scale, key }) {
  const operations = [...restOperations(scale), ...graphqlOperations()];
  const lists = await Promise.all(operations.map(({ requests }) => requests(key.tokenOf)));
  const mixed = mix(lists, 9 * REQUESTS);
  // No warm-up: the very first request counts too.
  const paced = { rate: RATE, seconds: REQUESTS / RATE, connections: CONNECTIONS, leadSeconds: 0 };
  const figures = { fresh: /** @type {number[]} */ ([]), warm: /** @type {number[]} */ ([]) };
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await start('portico', { databaseUrl, key });
    while ((await fetch(`${server.baseUrl}/health/ready`)).status !== 200) await sleep(20);
    figures.fresh.push(percentilesOf(await pace(server, mixed, paced)).p99);
    await drive(server, mixed, { seconds: WARM_SECONDS });
    figures.warm.push(percentilesOf(await pace(server, mixed.slice(2 * REQUESTS), paced)).p99);
    await server.stop();
  }
  return { fresh: median(figures.fresh), warm: median(figures.warm) };
}
