import { collectDefaultMetrics } from 'prom-client';
import { createApp } from './app.ts';
import { ConfigError, demoFile, readConfig } from './config.ts';
import { openDemoConsole } from './demo/console.ts';
import { type DemoFile, refreshDemoFile } from './demo/file.ts';
import { hasDemo, seedDemo } from './demo/seed.ts';
import { Fault } from './kernel/fault.ts';
import { whenDatabaseAnswers } from './platform/database.ts';
import { FolderOwnedError } from './platform/ownership.ts';

/** Environment → config → app → demo → listen → signal → close. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const app = await createApp(config);
  // Of the process, not of the app: memory, event-loop delay, garbage collections.
  collectDefaultMetrics({ register: app.metrics.registry });
  const isFirstStart = config.database === null && (await app.database.query`SELECT 1 FROM users LIMIT 1`).length === 0;
  if (isFirstStart) await seedDemo(app.database);
  // With an operator's PostgreSQL there may be other replicas, to which a port of this machine means nothing.
  if (config.database === null && (await hasDemo(app.database))) await openDemoConsole(app.database);
  const writeDemo = (port: number) =>
    whenDatabaseAnswers(
      () =>
        refreshDemoFile({
          database: app.database,
          tokens: app.tokens,
          baseUrl: config.publicUrl ?? `http://localhost:${port}`,
          path: demoFile(config),
        }),
      app.log,
    );
  // The file is there before the port opens; only a port that the system chooses must be known first.
  const before = config.port === 0 ? null : await writeDemo(config.port);
  const { port } = await app.listen(config.port, config.host);
  const demo = before ?? (await writeDemo(port));
  console.log(`Portico listens on ${config.publicUrl ?? `http://localhost:${port}`}`);
  // Where there is an operator's PostgreSQL, standard output is kept somewhere: no key belongs there.
  if (demo) console.log(config.database ? `Demo users, keys and ids: ${demoFile(config)}` : invite(demo, demoFile(config)));

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      app.log.info({ signal }, 'stopping');
      // Whoever asks twice does not want to wait.
      process.once(signal, () => process.exit(1));
      app.close().then(
        () => process.exit(0),
        (failure) => {
          app.log.fatal({ err: failure }, 'could not close');
          process.exit(1);
        },
      );
    });
  }
}

/** Commands that work when pasted: one for each door, one that writes, and one that shows a console. */
function invite(demo: DemoFile, file: string): string {
  const { base_url, organization_id, project_id } = demo;
  const bearer = `-H "Authorization: Bearer ${demo.users.owner.api_key}"`;
  const project = `${base_url}/v1/organizations/${organization_id}/projects/${project_id}`;
  const query = `{ project(organizationId: "${organization_id}", id: "${project_id}") { name unreadNotificationCount } }`;
  return [
    `GraphiQL: ${base_url}/graphql    demo users, tokens and ids: ${file}`,
    '',
    'Try:',
    `  curl ${bearer} ${project}/compute/overview`,
    `  curl ${bearer} -H "Content-Type: application/json" -d '${JSON.stringify({ query })}' ${base_url}/graphql`,
    `  curl -X POST ${bearer} ${project}/notifications/read`,
    `  node docs/clients/console.mjs ${file}`,
    '',
  ].join('\n');
}

/** Of several addresses that were tried, each failed for a reason of its own. */
function describe(failure: unknown): string {
  if (failure instanceof AggregateError) return failure.errors.map(describe).join(', ');
  return failure instanceof Error ? failure.message : String(failure);
}

main().catch((failure: unknown) => {
  const isExpected = failure instanceof ConfigError || failure instanceof FolderOwnedError;
  const { code, port } = failure as { code?: unknown; port?: unknown };
  if (code === 'EADDRINUSE') console.error(`Port ${port} is in use: stop what listens there, or set PORT.`);
  else if (Fault.from(failure).code === 'service_unavailable') console.error(`PostgreSQL does not answer: ${describe(failure)}`);
  else console.error(isExpected ? failure.message : failure);
  process.exit(1);
});
