// npm run scale [-- --seed n --projects n --sockets n --dearer n] [--measure]: the resources for a provider of that size, its first
// bottleneck, and the effect of outages. With --measure it first measures the cost of each operation on this machine.
import { parseArgs } from 'node:util';
import { product, readCosts } from './scale/calibration.mjs';
import { countReplicas, drawSizes, machines, openRandom, reckon, sharesOf, sum, usual } from './scale/provider.mjs';
import { habits, loseRedis, loseSockets } from './scale/simulation.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    projects: { type: 'string', default: String(usual.projects) },
    sockets: { type: 'string', default: String(usual.sockets) },
    dearer: { type: 'string', default: '1' },
    measure: { type: 'boolean', default: false },
  },
});
if (values.measure) await (await import('./scale/costs.mjs')).measureCosts();

const assumed = { ...usual, projects: Number(values.projects), sockets: Number(values.sockets) };
const costs = readCosts();
const random = openRandom(Number(values.seed));
const sizes = drawSizes(assumed, random);

/** A Markdown table; columns of figures are right-aligned. @param {string[]} head @param {Array<Array<string | number>>} rows */
function table(head, rows) {
  const line = (/** @type {Array<string | number>} */ cells) => `| ${cells.join(' | ')} |`;
  const isFigures = (/** @type {number} */ column) => rows.every((row) => /^([\d.,]+( %)?|–|never)$/.test(String(row[column])));
  return [line(head), line(head.map((_, column) => (isFigures(column) ? '---:' : '---'))), ...rows.map(line)].join('\n');
}

/** @param {number} value */
function figure(value) {
  if (!Number.isFinite(value)) return 'never';
  return Number(value.toPrecision(value >= 1000 ? 3 : 2)).toLocaleString('en', { maximumFractionDigits: 6 });
}
const percent = (/** @type {number} */ share) => `${figure(share * 100)} %`;
const perCore = (/** @type {number} */ seconds) => figure(machines.busy / seconds);
const { requests: mix } = costs;
const ofMix = (/** @type {'node' | 'postgres'} */ part) =>
  Object.entries(assumed.mix).reduce((all, [name, share]) => all + share * mix[/** @type {keyof typeof mix} */ (name)][part], 0);

function printOne() {
  const rows = [
    ['requests, as mixed here', ofMix('node'), ofMix('postgres')],
    ['sockets that say nothing, each of its own user and project', costs.idleSocket, costs.socketSecond],
    ['sockets that open by ticket', costs.connect.node, costs.connect.postgres],
    ['sockets that come back, with ten entries', costs.reconnect.node, costs.reconnect.postgres],
    ['publications', costs.publication.node, costs.publication.postgres],
    ['arrivals of an event at a process', costs.arrival.node, costs.arrival.postgres],
    ['deliveries to a socket', costs.delivery, 0],
    ['wake-ups that concern no socket here', costs.wakeup, 0],
  ];
  return table(
    ['of each alone, a second', `a replica carries`, 'µs', `a core of PostgreSQL carries`, 'µs'],
    rows.map(([what, node, postgres]) => [
      String(what),
      perCore(Number(node)),
      figure(Number(node) * 1e6),
      Number(postgres) > 0 ? perCore(Number(postgres)) : '–',
      Number(postgres) > 0 ? figure(Number(postgres) * 1e6) : '–',
    ]),
  );
}

/** @param {Record<string, number>} parts */
const list = (parts) =>
  Object.entries(parts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, seconds]) => `${name} ${figure(seconds)}`)
    .join(', ');

/** @param {import('./scale/provider.mjs').Demand} demand @param {number} replicas */
function printProvider(demand, replicas) {
  const cores = Math.ceil(sum(demand.postgres) / machines.busy);
  return table(
    ['what', 'how much', ''],
    [
      [
        'projects, sockets',
        `${figure(assumed.projects)}, ${figure(demand.sockets)}`,
        `the largest project has ${figure(Number(sizes[0]))}`,
      ],
      ['requests a second', figure(demand.requests), `and ${figure(demand.connects)} sockets that open`],
      [
        'publications a second',
        figure(demand.publications),
        `${figure(demand.deliveries)} deliveries; the largest project ${figure(demand.publishedByLargest)}, of ${figure(costs.publishedPerSecond)} that one can`,
      ],
      [
        'replicas',
        figure(replicas),
        `${figure(demand.sockets / replicas)} sockets each, ${percent(sum(demand.node) / replicas)} of the core`,
      ],
      ['… cores busy', figure(sum(demand.node)), list(demand.node)],
      [
        'PostgreSQL, cores',
        figure(cores),
        `${percent(machines.busy)} busy; ${figure(cores / machines.coresOfPostgres)} machines of ${machines.coresOfPostgres}`,
      ],
      ['… cores busy', figure(sum(demand.postgres)), list(demand.postgres)],
      ['… connections', figure(demand.connections), `${product.connectionsOfReplica} a replica`],
      [
        '… rows that polls ask for, a second',
        figure(demand.polledRows),
        `${figure(demand.bytesToPostgres / 1e6)} MB/s to and from PostgreSQL`,
      ],
      [
        '… new rows a day',
        figure(demand.rowsOfDay),
        `${figure((demand.rowsOfDay * costs.bytesOfNotification) / 1e9)} GB with their indexes`,
      ],
      ['Redis, cores busy', figure(sum(demand.redis)), `${list(demand.redis)}; ${figure(demand.messages)} messages a second`],
    ],
  );
}

/** The largest provider of the same kind that one PostgreSQL and one Redis can serve. */
function printEnds() {
  /** @type {Map<number, {sockets: number, replicas: number, shares: ReturnType<typeof sharesOf>}>} */
  const looked = new Map();
  /** A provider that starts at 1,000 sockets and grows by one percent per step. @param {number} step */
  const at = (step) => {
    const known = looked.get(step);
    if (known) return known;
    const sockets = Math.round(1_000 * 1.01 ** step);
    const smaller = { ...assumed, sockets, projects: Math.round((assumed.projects * sockets) / assumed.sockets) };
    const drawn = drawSizes(smaller, openRandom(Number(values.seed)));
    const replicas = countReplicas(drawn, smaller, costs);
    const found = { sockets, replicas, shares: sharesOf(reckon(drawn, smaller, costs, replicas)) };
    looked.set(step, found);
    return found;
  };
  const names = /** @type {Array<keyof ReturnType<typeof sharesOf>>} */ (Object.keys(at(0).shares));
  const ends = names.map((name) => {
    let [few, many] = [0, 64];
    while (at(many).shares[name] < 1) many += 64;
    while (many - few > 1) {
      const middle = (few + many) >> 1;
      if (at(middle).shares[name] < 1) few = middle;
      else many = middle;
    }
    return { name, ...at(few) };
  });
  return table(
    ['what ends', 'at so many sockets', 'replicas'],
    ends.sort((a, b) => a.sockets - b.sockets).map(({ name, sockets, replicas }) => [name, figure(sockets), figure(replicas)]),
  );
}

/** @param {import('./scale/simulation.mjs').World} world */
function printRedis(world) {
  const phases = loseRedis(world, { before: 600, away: 3_600, after: 600 });
  const tries = (world.replicas * product.redisConnections) / product.redisReconnectSeconds;
  const delays = table(
    ['', 'an event to a socket: p50 ms', 'p99 ms', 'PostgreSQL busy', 'reads of the log a second'],
    phases.map(({ name, p50, p99, postgres, reads }) => [name, p50, p99, percent(postgres), figure(reads)]),
  );
  return `${delays}\n\nMeanwhile the replicas try ${figure(tries)} times a second to connect to Redis, and each counts the budget of a user for itself: ${figure(world.replicas * product.budgetOfUser)} requests an hour in all of them together.`;
}

/** @param {import('./scale/simulation.mjs').World} world */
function printStorms(world) {
  const outages = [
    { what: `a zone of ${machines.zones}, for good`, share: 1 / machines.zones, awaySeconds: 0 },
    // After two minutes the retries of the clients are as spread out as after an hour.
    { what: 'all of it, for an hour', share: 1, awaySeconds: 120 },
  ];
  const gated = 'as the client package does';
  const ways = [
    ...Object.entries(habits).map(([name, habit]) => ({ name, habit, isGated: false })),
    { name: `${gated}, through a gate`, habit: habits[gated], isGated: true },
    { name: 'after just what a refusal says, through a gate', habit: habits['after just what a refusal says'], isGated: true },
  ];
  const rows = outages.flatMap(({ what, ...outage }) =>
    ways.map(({ name, habit, isGated }) => {
      const storm = loseSockets(world, { ...outage, habit, isGated });
      return [
        what,
        name,
        figure(storm.half),
        figure(storm.most),
        figure(storm.all),
        figure(storm.attemptsOfClient),
        figure(storm.peak),
        percent(storm.refused / storm.attempts),
        percent(storm.given / storm.attempts),
        figure(storm.longest),
        figure(storm.refusedOthers),
      ];
    }),
  );
  return table(
    [
      'what goes',
      'clients come back',
      'half s',
      '99 % s',
      'all s',
      'tries a client',
      'tries a second, at most',
      'refused',
      'given up',
      'longest wait s',
      'requests of others refused',
    ],
    rows,
  );
}

const replicas = countReplicas(sizes, assumed, costs);
const demand = reckon(sizes, assumed, costs, replicas);
const world = { sizes, assumed, costs, replicas, cores: Math.ceil(sum(demand.postgres) / machines.busy), random };
const dearer = Number(values.dearer);
const { node, postgres } = costs.reconnect;
/** @type {Array<() => string>} */
const sections = [
  () =>
    `Reckoned with results.md (${costs.sources.results}) and costs.json (${costs.sources.costs}); seed ${values.seed}. What costs.json has counts ${figure(costs.pace.node)} times for Node and Redis, ${figure(costs.pace.postgres)} times for PostgreSQL: so do the requests that both have.`,
  () => `A core counts as full at ${percent(machines.busy)}.`,
  printOne,
  () => `One PostgreSQL of ${machines.coresOfPostgres} cores and one Redis, of a provider of the same kind:`,
  printEnds,
  () => 'The provider:',
  () => printProvider(demand, replicas),
  () => 'An hour without Redis:',
  () => printRedis(world),
  () => 'Sockets that are lost:',
  () => printStorms({ ...world, costs: { ...costs, reconnect: { node: node * dearer, postgres: postgres * dearer } } }),
];
for (const print of sections) console.log(`${print()}\n`);
