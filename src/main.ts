import { collectDefaultMetrics } from 'prom-client';
import { openDemoConsole } from '../demo/console.ts';
import { type DemoFile, refreshDemoFile } from '../demo/file.ts';
import { project, users } from '../demo/people.ts';
import { hasDemo, seedDemo } from '../demo/seed.ts';
import { type App, createApp } from './app.ts';
import { ConfigError, demoFile, readConfig } from './config.ts';
import { whenDatabaseAnswers } from './platform/database.ts';
import { describeFailure } from './platform/failure.ts';
import { collectGarbage } from './platform/garbage.ts';

/** A terminal sends Ctrl-C to npm and to the server, and npm passes it on: the server gets one signal twice. */
const ECHO_MS = 2_000;

/** Environment → config → app → demo → signals → listen. */
async function main(): Promise<void> {
  const config = readConfig(process.env);
  const app = await createApp(config);
  // graphql-js leaves an unhandled rejection where two fields of a list fail at once: no reason for a server to end.
  process.on('unhandledRejection', (failure) => app.log.error({ err: failure }, 'a rejection that nobody has handled'));
  // These metrics are of the process, not of the app: memory, event-loop delay, garbage collections.
  collectDefaultMetrics({ register: app.metrics.registry });
  const isFirstStart = config.database === null && (await app.database.user.findFirst({ select: { id: true } })) === null;
  if (isFirstStart) await seedDemo(app.database);
  // With an operator's PostgreSQL there may be other replicas, to which a port of this machine means nothing.
  if (config.database === null && (await hasDemo(app.database))) {
    await openDemoConsole(app.database);
    app.offerDemo({ people: Object.values(users), projectId: project.id });
  }
  const writeDemo = (port: number) => {
    const baseUrl = config.publicUrl ?? `http://localhost:${port}`;
    const write = () => refreshDemoFile({ database: app.database, tokens: app.tokens, baseUrl, path: demoFile(config) });
    return config.database ? whenDatabaseAnswers(write, app.log) : write();
  };
  // The file is there before the port opens; only a port that the system chooses must be known first.
  const before = config.port === 0 ? null : await writeDemo(config.port);
  closeOnSignals(app);
  // Where there are replicas, their balancer asks who is ready.
  if (config.database) void app.warmUp();
  const { port } = await app.listen(config.port, config.host);
  const demo = before ?? (await writeDemo(port));
  console.log(`Portico listens on ${config.publicUrl ?? `http://localhost:${port}`}`);
  // With an operator's PostgreSQL, standard output is stored somewhere: no key belongs there.
  if (demo) console.log(config.database ? `Demo users, keys and ids: ${demoFile(config)}` : invite(demo, demoFile(config)));
  // A replica does so before it is ready.
  if (!config.database) await collectGarbage();
}

/** The signals that ask for an end count from before the port opens. */
function closeOnSignals(app: App): void {
  let stoppingSince: number | null = null;
  const stop = (signal: NodeJS.Signals) => {
    if (stoppingSince !== null) {
      // A second signal ends the process at once.
      if (performance.now() - stoppingSince > ECHO_MS) process.exit(1);
      return;
    }
    stoppingSince = performance.now();
    app.log.info({ signal }, 'stopping');
    app.close().then(
      () => process.exit(0),
      (failure) => {
        app.log.fatal({ err: failure }, 'could not close');
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop);
}

/** Commands that work when pasted: one for each door, one that writes, and one that shows a console. */
function invite(demo: DemoFile, file: string): string {
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
    `  node docs/clients/console.mjs ${file}`,
    '',
  ].join('\n');
}

main().catch((failure: unknown) => {
  console.error(failure instanceof ConfigError ? failure.message : (describeFailure(failure) ?? failure));
  process.exit(1);
});
