import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { addAccount } from './account.ts';
import { addApi } from './api.ts';
import { addConsole } from './console.ts';
import { addDashboards } from './dashboards.ts';
import { CommandFailure, describeFailure } from './failure.ts';
import { addInstances } from './instances.ts';
import { addKeys } from './keys.ts';
import { addNotifications } from './notifications.ts';
import { addOverview } from './overview.ts';
import { addTasks } from './tasks.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

// An empty variable is none, as in other programs.
if (process.env.PORTICO_PROFILE === '') delete process.env.PORTICO_PROFILE;

const program = new Command('portico')
  .description('Portico from a terminal: works with a server, as you.')
  .version(version)
  .exitOverride()
  .configureHelp({ showGlobalOptions: true })
  .addOption(
    new Option('--profile <name>', 'the credential and project that were kept under this name').env('PORTICO_PROFILE').default('default'),
  )
  .option('--url <address>', 'the server (PORTICO_URL goes before the profile)')
  .option('--project <project>', 'its name or id (PORTICO_PROJECT goes before the profile)')
  .option('--plain-http', 'allow http:// to another machine, where others can read the credential on its way')
  .option('--json', 'one JSON document instead of a text; events as a line each')
  .addHelpText(
    'after',
    `
PORTICO_CREDENTIAL goes before the credential of the profile.

These are the commands of those who use a server. Those of who runs one (token, api-key, migrate, seed, user, …) work
on its database, where its sources are: npm run portico -- --help`,
  );

for (const add of [addAccount, addOverview, addNotifications, addInstances, addTasks, addDashboards, addConsole, addKeys, addApi])
  add(program);

/** A closed pipe (`| head`) ends the program without an error; a full disk does not. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(0);
    if (stream === process.stdout) console.error(`Standard output cannot be written (${code}).`);
    process.exit(1);
  });
}

/** Exits after pending output is flushed, as writes to a pipe are asynchronous. */
async function exit(code: number): Promise<never> {
  for (const stream of [process.stdout, process.stderr]) await new Promise((resolve) => stream.write('', resolve));
  process.exit(code);
}

function toExitCode(failure: unknown): number {
  // Commander has already printed the usage error, the help or the version.
  if (failure instanceof CommanderError) return failure.exitCode === 0 ? 0 : 2;
  console.error(describeFailure(failure) ?? failure);
  return failure instanceof CommandFailure ? failure.exitCode : 1;
}

program.parseAsync().then(
  () => exit(0),
  (failure) => exit(toExitCode(failure)),
);
