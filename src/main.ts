import { existsSync } from 'node:fs';
import { collectDefaultMetrics } from 'prom-client';
import { openDemoConsole } from '../demo/console.ts';
import { type DemoFile, refreshDemoFile } from '../demo/file.ts';
import { project, users } from '../demo/people.ts';
import { hasDemo, seedDemo } from '../demo/seed.ts';
import { type App, createApp } from './app.ts';
import { type Config, ConfigError, demoFilePath, readConfig } from './config.ts';
import { logWait, retryUntilDatabaseAnswers } from './platform/databasewait.ts';
import { collectGarbage } from './platform/garbage.ts';
import { describeFailure } from './platform/operatorerror.ts';
import { endOnSignals, stopOnSignals } from './platform/signals.ts';

/** An example program in the checkout, which an image does not have. */
const consoleClient = 'docs/clients/console.mjs';

/** Whether a signal has told the server to stop. */
let isStopping = () => false;

/** Environment → config → app → demo → signals → listen. */
async function main(): Promise<void> {
  const stopEnding = endOnSignals();
  const config = readConfig(process.env);
  const app = await createApp(config);
  try {
    await serve(app, config, stopEnding);
  } catch (failure) {
    // A signal closes the app itself.
    if (!isStopping()) await app.close().catch(() => {});
    throw failure;
  }
}

async function serve(app: App, config: Config, stopEnding: () => void): Promise<void> {
  // graphql-js leaves an unhandled rejection where an item of a list, a promise, rejects after another one has thrown: the server must
  // not exit for that.
  process.on('unhandledRejection', (failure) => app.log.error({ err: failure }, 'a rejection that nobody has handled'));
  // Metrics of the process rather than the app: memory, event-loop delay, garbage collections.
  collectDefaultMetrics({ register: app.metrics.registry });
  const isFirstStart = config.database === null && (await app.database.prisma.user.findFirst({ select: { id: true } })) === null;
  if (isFirstStart) await seedDemo(app.database);
  // With an operator's PostgreSQL there may be replicas on other machines, which could not reach a port of this one.
  if (config.database === null && (await hasDemo(app.database.prisma))) {
    await openDemoConsole(app.database);
    app.offerDemo({ people: Object.values(users), projectId: project.id });
  }
  const writeDemo = (port: number) => {
    const baseUrl = config.publicUrl ?? `http://localhost:${port}`;
    const write = () => refreshDemoFile({ database: app.database, tokens: app.tokens, baseUrl, path: demoFilePath(config) });
    return config.database ? retryUntilDatabaseAnswers(write, logWait(app.log)) : write();
  };
  // The file is written before the port opens, unless the system chooses the port.
  const written = config.port === 0 ? null : await writeDemo(config.port);
  // The new listeners come first: a signal that arrives between the two calls would otherwise be lost.
  closeOnSignals(app);
  stopEnding();
  // The port opens meanwhile: `/health/ready` says `starting` until this is done, and a balancer sends no requests.
  if (config.database) void app.warmUp();
  const { port } = await app.listen(config.port, config.host);
  const demo = written ?? (await writeDemo(port));
  console.log(`Portico listens on ${config.publicUrl ?? `http://localhost:${port}`}`);
  // With an operator's PostgreSQL, standard output is stored somewhere: no key belongs there.
  if (demo) console.log(config.database ? `Demo users, keys and ids: ${demoFilePath(config)}` : describeDemo(demo, demoFilePath(config)));
  // With PostgreSQL, `warmUp` does this.
  if (!config.database) await collectGarbage();
}

/** Closes the app on SIGINT or SIGTERM. A second signal ends the process at once. */
function closeOnSignals(app: App): void {
  isStopping = stopOnSignals(async (signal) => {
    app.log.info({ signal }, 'stopping');
    await app.close().catch((failure) => {
      app.log.fatal({ err: failure }, 'could not close');
      process.exit(1);
    });
  });
}

/** Commands to paste: one for REST, one for GraphQL, one that writes, and one that shows a console, where its program is. */
function describeDemo(demo: DemoFile, file: string): string {
  const { base_url, organization_id, project_id } = demo;
  const bearer = `-H "Authorization: Bearer ${demo.users.owner.api_key}"`;
  const project = `${base_url}/v1/organizations/${organization_id}/projects/${project_id}`;
  const query = `{ project(organizationId: "${organization_id}", id: "${project_id}") { name unreadNotificationCount } }`;
  return [
    `In a browser: ${base_url}    demo users, tokens and ids: ${file}`,
    '',
    'Try:',
    `  curl ${bearer} ${project}/compute/overview`,
    `  curl ${bearer} -H "Content-Type: application/json" -d '${JSON.stringify({ query })}' ${base_url}/graphql`,
    `  curl -X POST ${bearer} ${project}/notifications/read`,
    ...(existsSync(consoleClient) ? [`  node ${consoleClient} ${quote(file)}`] : []),
    '',
  ].join('\n');
}

/** A path as one word of a shell's command. */
function quote(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

main().catch((failure: unknown) => {
  // The last steps of a start fail once a signal has closed the database under them.
  if (isStopping()) return;
  console.error(failure instanceof ConfigError ? failure.message : (describeFailure(failure) ?? failure));
  process.exit(1);
});
