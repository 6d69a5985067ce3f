// node lint/mutations.mjs: a mutation test of the check. A copy of the sources gets one mistake in each of several statements;
// the check must report every one of these statements.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { check } from './check.mjs';

/** `at` is a text at or before the start of the statement; the first `from` after it is replaced by `to`. */
const mutations = [
  { name: 'a column is renamed', file: 'tickets/service.ts', at: 'query<TicketRow>', from: 'used_at IS', to: 'redeemed_at IS' },
  { name: 'a table is renamed', file: 'backups/service.ts', at: 'query<StateRow>', from: 'billing_services AS', to: 'billing_service AS' },
  {
    name: 'a nullable column is read as present',
    file: 'tickets/service.ts',
    at: 'query<RedeemedRow>',
    from: 'RedeemedRow',
    to: 'RedeemedRow & { instanceId: string }',
  },
  {
    name: 'a nullable column is read as present, by its row',
    file: 'access/viewer.ts',
    at: 'query<UserRow>',
    from: 'UserRow',
    to: "Omit<UserRow, 'disabledAt'> & { disabledAt: Date }",
  },
  {
    name: 'a join that may find nothing',
    file: 'access/scope.ts',
    at: 'query<ProjectRow',
    from: 'JOIN organizations',
    to: 'LEFT JOIN organizations',
  },
  { name: 'a type is changed', file: 'consoles/store.ts', at: 'query<{ count', from: 'count: number', to: 'count: string' },
  {
    name: 'an enum is taken for another',
    file: 'consoles/store.ts',
    at: 'query<EndpointRow & { name',
    from: 'InstanceStatus',
    to: 'ConsoleKind',
  },
  { name: 'an alias is lost', file: 'accounts/members.ts', at: 'query<{ organizationId: string', from: ' AS "organizationId"', to: '' },
  {
    name: 'a column is claimed that is not selected',
    file: 'consoles/store.ts',
    at: 'query<{ formerId',
    from: 'formerId: string',
    to: 'formerId: string; kind: string',
  },
  {
    name: 'a name within JSON',
    file: 'compute/overview.ts',
    at: 'query<{ projectId: string; overview',
    from: "'tasksStuck'",
    to: "'tasksHanging'",
  },
  { name: 'a cast of a parameter is missing', file: 'tickets/service.ts', at: 'query<{ id: string }>', from: '::uuid', to: '' },
  {
    name: 'a cast of a list is missing',
    file: 'access/revocation.ts',
    at: 'query<{ position',
    from: '::uuid[]',
    to: '',
  },
  {
    name: 'a cast is missing where nothing else tells the type',
    file: 'compute/instances.ts',
    at: 'async function listAttentiveInstances',
    from: '::instance_status IS NULL',
    to: ' IS NULL',
  },
  {
    name: 'a parameter of another type',
    file: 'consoles/store.ts',
    at: 'query`\n    WITH counted AS',
    from: '{bytesIn}',
    to: '{id}',
  },
  {
    name: 'a fragment in a statement',
    file: 'dashboards/read.ts',
    at: 'function listOrderedDashboards',
    from: '{limit}',
    to: '{Prisma.sql`1`}',
  },
  {
    name: 'a column of a subquery is renamed',
    file: 'dashboards/read.ts',
    at: 'query<DashboardRow & Sized>',
    from: 'octet_length(description)',
    to: 'octet_length(summary)',
  },
  {
    name: 'a branch of CASE that may be null',
    file: 'dashboards/read.ts',
    at: 'query<DashboardRow & Sized>',
    from: " ELSE ''",
    to: '',
  },
  {
    name: 'a column is not returned',
    file: 'dashboards/service.ts',
    at: 'query<DashboardRow>`\n      INSERT',
    from: ', widgets,',
    to: ',',
  },
  {
    name: 'a parameter of another type, in an update',
    file: 'dashboards/service.ts',
    at: 'query<DashboardRow>`\n      UPDATE',
    from: '{isDefault}',
    to: '{name}',
  },
  { name: 'a condition on a lost column', file: 'dashboards/service.ts', at: 'const [deleted]', from: 'created_by', to: 'created_by_id' },
  {
    name: 'a cast of a filter is missing',
    file: 'notifications/oneproject.ts',
    at: 'function selectFiltered',
    from: '::text IS NULL)',
    to: ' IS NULL)',
  },
  {
    name: 'an alias is another one',
    file: 'notifications/oneproject.ts',
    at: 'function selectLog',
    from: '"resourceType"',
    to: '"resource"',
  },
  {
    name: 'a function without an argument',
    file: 'notifications/oneproject.ts',
    at: 'function countList',
    from: '(project_id, ',
    to: '(',
  },
  {
    name: 'a column of a table that is only looked into',
    file: 'notifications/oneproject.ts',
    at: 'function countFiltered',
    from: 'single.user_id',
    to: 'single.reader_id',
  },
  {
    name: 'a number for a boolean',
    file: 'notifications/entries.ts',
    at: 'database.query<LogEntry>',
    from: ' IS NOT NULL AS "hasNext"',
    to: ' AS "hasNext"',
  },
  {
    name: 'a list of another type',
    file: 'notifications/readstate.ts',
    at: 'function loadReadState',
    from: 'ids: string[]',
    to: 'ids: number[]',
  },
  {
    name: 'a column that another table has',
    file: 'notifications/readstate.ts',
    at: 'function listSingleReads',
    from: 'single.version',
    to: 'notification.version',
  },
  {
    name: 'an alias is lost, in an insert',
    file: 'notifications/publishing.ts',
    at: "database.query<Omit<Notification, 'read'>>",
    from: ' AS "resourceId"',
    to: '',
  },
];

const root = fileURLToPath(new URL('..', import.meta.url));
const copy = `${root}lint/mutated/`;
try {
  const expected = mutate();
  const { problems } = await check({ root: copy, migrations: `${root}prisma/migrations`, folders: ['src', 'demo'] });
  const missed = expected.filter(
    ({ file, first, last }) => !problems.some((one) => one.file === file && one.line >= first && one.line <= last),
  );
  const stray = problems.filter(
    (one) => !expected.some(({ file, first, last }) => one.file === file && one.line >= first && one.line <= last),
  );
  for (const { name, file, first } of missed) console.error(`not seen: ${name} (${file}:${first})`);
  for (const { file, line, message } of stray) console.error(`seen where nothing was done: ${file}:${line}  ${message}`);
  if (missed.length + stray.length > 0) process.exitCode = 1;
  else console.log(`${expected.length} of ${mutations.length} mistakes are seen.`);
} finally {
  rmSync(copy, { recursive: true, force: true });
}

/** Writes the copy; returns the line range of each mutated statement. Mutations do not change line numbers. */
function mutate() {
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy);
  for (const path of ['src', 'demo', 'tsconfig.json', 'package.json']) cpSync(root + path, copy + path, { recursive: true });
  return mutations.map(({ name, file, at, from, to }) => {
    const path = `${copy}src/${file}`;
    const text = readFileSync(path, 'utf8');
    const begin = text.indexOf(at);
    const place = begin < 0 ? -1 : text.indexOf(from, begin);
    if (place < 0) throw new Error(`there is nothing to do for: ${name}`);
    writeFileSync(path, text.slice(0, place) + to + text.slice(place + from.length));
    const end = text.indexOf('`', text.indexOf('`', begin) + 1);
    return { name, file: `src/${file}`, first: lineOf(text, begin), last: lineOf(text, end) };
  });
}

function lineOf(text, offset) {
  return text.slice(0, offset).split('\n').length;
}
