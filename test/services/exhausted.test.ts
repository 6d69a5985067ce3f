import { expect, it } from 'vitest';
import { copyTemplate, needPostgres, startApp } from '../support/app.ts';
import { execute } from '../support/sql.ts';

it('a PostgreSQL without a connection left has one line in the log, and not one for each request', async () => {
  const origin = needPostgres();
  const role = `${origin.template}_few`;
  const url = new URL(await copyTemplate());
  await execute(origin.server, `CREATE ROLE ${role} LOGIN`);
  await execute(url.href, `GRANT ALL ON SCHEMA public TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
  url.username = role;
  const app = await startApp({ DATABASE_URL: url.href, DATABASE_POOL: '20' });
  await execute(origin.server, `ALTER ROLE ${role} CONNECTION LIMIT 1`);
  const logged = () => app.logLines.map((line) => JSON.parse(line));
  const tasks = `query ($id: ID!) { project(id: $id) { tasks(first: 1) { nodes { id } } } }`;
  const doors = [() => app.ask('GET', `${app.projectPath}/compute/overview`), () => app.graphql(tasks, { id: app.demo.project_id })];
  let refused = 0;
  for (const ask of doors) {
    const before = refused;
    while (refused === before) {
      const responses = await Promise.all(Array.from({ length: 40 }, ask));
      refused += responses.filter(({ text }) => text.includes('service_unavailable')).length;
    }
  }
  expect(logged().filter(({ msg }) => msg === 'unavailable')).toEqual([]);
  const lines = logged().filter(({ msg }) => msg === 'the connections of PostgreSQL are exhausted');
  expect(lines[0]).toMatchObject({ level: 'warn', count: 1, err: { message: expect.stringContaining('too many connections') } });
  expect(lines.length).toBeLessThan(refused);
  await app.close();
  await execute(url.href.replace(`${role}@`, 'postgres@'), `DROP OWNED BY ${role}`);
  await execute(origin.server, `DROP ROLE ${role}`);
});
