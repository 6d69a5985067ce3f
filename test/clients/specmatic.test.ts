import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { operations } from '../support/contract.ts';
import { checkout, folder, run } from './tools.ts';

const place = join(folder, 'generated/specmatic');

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_USER: '1000000000', RATE_LIMIT_ANONYMOUS: '1000000000', LOG_LEVEL: 'error' });
  // Every request is to find the example's dashboard, also the one behind a deletion.
  await app.app.database.prisma.$executeRawUnsafe(
    'CREATE FUNCTION bring_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO dashboards SELECT (OLD).*; RETURN NULL; END $$',
  );
  await app.app.database.prisma.$executeRawUnsafe(
    'CREATE TRIGGER bring_back AFTER DELETE ON dashboards FOR EACH ROW EXECUTE FUNCTION bring_back()',
  );
  // The keys that it makes up, the shortest and the longest ones, are the same for each request.
  await app.app.database.prisma.$executeRawUnsafe(
    'CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM kept_answers; RETURN NULL; END $$',
  );
  await app.app.database.prisma.$executeRawUnsafe(
    'CREATE TRIGGER forget AFTER INSERT OR UPDATE ON kept_answers FOR EACH ROW WHEN (NEW.is_answered) EXECUTE FUNCTION forget()',
  );
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  // What makes its texts (dk.brics.automaton) knows no escape of a character in a pattern: it is given the characters themselves. What stands
  // between quotation marks is to it the text itself, so a key without them is all that it is told of: otherwise it would make one of the
  // pattern's own letters, once in a thousand times.
  const document = readFileSync(join(checkout, 'openapi.json'), 'utf8')
    .replace(/\\\\u(?=[0-9a-f]{4})/g, '\\u')
    .replace(/"pattern": "\^\(([^|]+)\|\\"\1\\"\)\$"/g, '"pattern": "^$1$$"');
  expect(document).not.toMatch(/"pattern": ".*\\"/);
  writeFileSync(join(place, 'openapi.json'), document);
  writeFileSync(
    join(place, 'specmatic.yaml'),
    'version: 2\ncontracts:\n  - provides:\n      - openapi.json\ntest:\n  resiliencyTests:\n    enable: all\n',
  );
  // A console is opened on an instance that there is: Specmatic would make up an id.
  writeFileSync(join(place, 'openapi_dictionary.yaml'), `ConsoleWebSocketTicketRequest:\n  instance_id: ${app.demo.instances.eligible}\n`);
});
afterAll(() => app.close());

it('Specmatic’s generated requests, good and bad, are all answered as the document says', async () => {
  const jar = join(folder, 'node_modules/specmatic/specmatic.jar');
  const env = { bearer: app.demo.users.owner.token ?? '', SPECMATIC_GENERATIVE_TESTS: 'true' };
  // A JVM that runs for less than a minute gains nothing from its second compiler and from collecting garbage on all cores.
  const options = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
  const { code, out } = await run('java', [...options, '-jar', jar, 'test', `--testBaseURL=${app.baseUrl}`, 'openapi.json'], env, place);
  const [line, count, , failures, errors] = /Tests run: (\d+), Successes: (\d+), Failures: (\d+), WIP: 0, Errors: (\d+)/.exec(out) ?? [];
  console.log(`Specmatic: ${line}`);
  const failed = out.split('\n').filter((text) => /FAILED"$/.test(text));
  expect(failed, out.slice(out.lastIndexOf('Unsuccessful Scenarios'))).toEqual([]);
  expect([code, Number(failures), Number(errors)], out.slice(-3000)).toEqual([0, 0, 0]);
  expect(Number(count)).toBeGreaterThan(400);
  for (const { method, path } of Object.values(operations)) {
    const scenario = `${method.toUpperCase()} ${path.replace(/:(\w+)/g, '($1:uuid)')} -> 20`;
    expect(out, scenario).toContain(`+ve  Scenario: ${scenario}`);
  }
});
