import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { refreshDemoFile } from '../demo/file.ts';
import { seedDemo } from '../demo/seed.ts';
import { openTokens, type Tokens } from './access/tokens.ts';
import {
  addApiKey,
  addMember,
  addOrganization,
  addProject,
  addUser,
  findActiveUser,
  removeMember,
  revokeUserKey,
  setDisabled,
} from './accounts/operatorcommands.ts';
import { type After, listAllMembers, listAllOrganizations, listAllProjects, listUserKeys, listUsers } from './accounts/operatorlists.ts';
import { ConfigError, demoFilePath, readConfig } from './config.ts';
import { removeEndpoint, setEndpoint } from './consoles/operatorcommands.ts';
import { Lifecycle } from './kernel/lifecycle.ts';
import { type Database, openDatabase } from './platform/database.ts';
import type { DatabaseWait } from './platform/databasewait.ts';
import { createLogger } from './platform/logger.ts';
import { describeFailure, OperatorError } from './platform/operatorerror.ts';
import type { Listing } from './platform/operatoroutput.ts';
import { packageRoot } from './platform/packageroot.ts';
import { endOnSignals } from './platform/signals.ts';

const DAY_SECONDS = 86_400;

/** The parts of the server that a command works with: only those, as most of its time would be the loading of all. */
interface CommandDependencies {
  readonly database: Database;
  openTokens(): Promise<Tokens>;
}

/** Runs one command against the configured database, which is migrated first. */
async function withDependencies(work: (dependencies: CommandDependencies) => Promise<string | Listing>): Promise<void> {
  const config = readConfig(process.env);
  const lifecycle = new Lifecycle();
  const log = createLogger('error');
  try {
    const { database } = await openDatabase(config, lifecycle, { log, onWait: createWaitPrinter() });
    print(await work({ database, openTokens: () => openTokens(config, lifecycle, log) }));
  } finally {
    await lifecycle.close();
  }
}

/** Prints a result to standard output, and to standard error that a list continues, so that this stays out of pipes. */
function print(result: string | Listing): void {
  if (typeof result === 'string') return console.log(result);
  if (result.lines.length > 0) console.log(result.lines.join('\n'));
  if (result.next !== null) console.error(`More follow: --after ${result.next}`);
}

const { version } = JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8')) as { version: string };

/** Says on standard error what the command waits for, once: the log of a command has errors only. */
function createWaitPrinter(): (wait: DatabaseWait) => void {
  let isSaid = false;
  return ({ server, cause, secondsLeft }) => {
    const limit = secondsLeft === null ? '' : `, for at most ${secondsLeft} s`;
    if (!isSaid) console.error(`Waiting for PostgreSQL at ${server}${limit}: ${cause}`);
    isSaid = true;
  };
}

const program = new Command('portico')
  .description("The operator's commands. They work on the database that the environment names (see README.md).")
  .version(version)
  .addHelpText('after', '\nThe client package has a program of the same name, for users of a server: npx portico --help (docs/cli.md)');

program
  .command('token <email>')
  .description('print a session token of a user, good for a day')
  .action((email: string) =>
    withDependencies(async ({ database, openTokens }) => {
      const { id } = await findActiveUser(database, email);
      const { local } = await openTokens();
      if (!local) throw new OperatorError('The identity provider of JWT_JWKS_URL signs the tokens: ask it for one.');
      return local.sign(id, DAY_SECONDS);
    }),
  );

/** An option of each list. */
const after = ['--after <id>', 'continue after this id, the last one listed'] as const;

const keyCommands = program.command('api-key').description('what programs sign in with');

keyCommands
  // `portico api-key <email>` is short for `portico api-key add <email>`.
  .command('add <email>', { isDefault: true })
  .description('make an API key for a user and print it; it is shown only here')
  .requiredOption('--name <name>', 'what the key is for')
  .action((email: string, { name }: { name: string }) => withDependencies(({ database }) => addApiKey(database, { email, name })));

keyCommands
  .command('list <email>')
  .description('list the API keys of a user, the newest first: id, how the key begins, whether it is valid, its last use, name')
  .option(...after)
  .action((email: string, options: After) => withDependencies(({ database }) => listUserKeys(database, email, options)));

keyCommands
  .command('revoke <id>')
  .description('revoke an API key: it is refused from the next request on')
  .action((id: string) => withDependencies(({ database }) => revokeUserKey(database, id)));

program
  .command('migrate')
  .description('bring the database up to the newest migration')
  .action(() => withDependencies(async () => 'The database is up to date.'));

program
  .command('seed')
  .description('fill the database with the demo data; a second time changes nothing')
  .action(() =>
    withDependencies(async ({ database, openTokens }) => {
      const config = readConfig(process.env);
      const tokens = await openTokens();
      const isNew = await seedDemo(database);
      await refreshDemoFile({
        database,
        tokens,
        baseUrl: config.publicUrl ?? `http://localhost:${config.port}`,
        path: demoFilePath(config),
      });
      return `${isNew ? 'The demo data is in.' : 'The demo data was there already.'} Its users and ids: ${demoFilePath(config)}`;
    }),
  );

const userCommands = program.command('user').description('the people who may sign in');

userCommands
  .command('add <email>')
  .description('add a user and print the id')
  .requiredOption('--name <name>', 'as others see it')
  .option('--id <uuid>', 'the `sub` of the tokens that an identity provider signs for them')
  .action((email: string, options: { name: string; id?: string }) =>
    withDependencies(async ({ database }) => (await addUser(database, { email, ...options })).id),
  );

userCommands
  .command('list')
  .description('list all users: id, e-mail address, whether they are active, name')
  .option(...after)
  .action((options: After) => withDependencies(({ database }) => listUsers(database, options)));

userCommands
  .command('disable <email>')
  .description('take all access from a user at once: no token and no key of theirs is valid')
  .action((email: string) => withDependencies(({ database }) => setDisabled(database, email, true)));

userCommands
  .command('enable <email>')
  .description('give a disabled user their access again')
  .action((email: string) => withDependencies(({ database }) => setDisabled(database, email, false)));

const organizationCommands = program.command('organization').description('the owners of projects');

organizationCommands
  .command('add <name>')
  .description('add an organization and print the id')
  .requiredOption('--owner <email>', 'its first owner')
  .option('--currency <code>', 'three letters', 'EUR')
  .action((name: string, options: { owner: string; currency: string }) =>
    withDependencies(async ({ database }) => (await addOrganization(database, { name, ...options })).id),
  );

organizationCommands
  .command('list')
  .description('list all organizations: id, currency, name')
  .option(...after)
  .action((options: After) => withDependencies(({ database }) => listAllOrganizations(database, options)));

const projectCommands = program.command('project').description('what holds all resources');

projectCommands
  .command('add <name>')
  .description('add a project and print the id')
  .requiredOption('--organization <uuid>', 'whose it is')
  .action((name: string, options: { organization: string }) =>
    withDependencies(async ({ database }) => (await addProject(database, { name, ...options })).id),
  );

projectCommands
  .command('list [organization]')
  .description('list the projects of an organization, or all: id, id of the organization, name')
  .option(...after)
  .action((organization: string | undefined, options: After) =>
    withDependencies(({ database }) => listAllProjects(database, organization, options)),
  );

interface MemberOptions {
  readonly organization: string;
  readonly project?: string;
}

const memberCommands = program.command('member').description('who may do what');
const force = ['--force', 'even if the organization is left without an owner'] as const;

memberCommands
  .command('add <email>')
  .description('give a user a role in an organization, or in one of its projects; a second time changes it')
  .requiredOption('--organization <uuid>', 'the organization')
  .requiredOption('--role <role>', 'owner, admin or member; in a project viewer, member or admin')
  .option('--project <uuid>', 'the project')
  .option(...force)
  .action((email: string, options: MemberOptions & { role: string; force?: boolean }) =>
    withDependencies(({ database }) => addMember(database, { email, ...options })),
  );

memberCommands
  .command('list')
  .description('list the members of an organization, or who may see one of its projects: id, e-mail address, whether active, role')
  .requiredOption('--organization <uuid>', 'the organization')
  .option('--project <uuid>', 'the project')
  .option(...after)
  .action((options: MemberOptions & After) => withDependencies(({ database }) => listAllMembers(database, options)));

memberCommands
  .command('remove <email>')
  .description('take from a user the membership of an organization, with all roles in its projects, or the role in one of them')
  .requiredOption('--organization <uuid>', 'the organization')
  .option('--project <uuid>', 'the project')
  .option(...force)
  .action((email: string, options: MemberOptions & { force?: boolean }) =>
    withDependencies(({ database }) => removeMember(database, { email, ...options })),
  );

const consoleCommands = program.command('console').description('where the consoles of instances listen');

consoleCommands
  .command('set <instance>')
  .description('say where the console of an instance listens; a second time changes it, and closes what is open')
  .requiredOption('--kind <kind>', 'serial or vnc')
  .option('--tcp <host:port>', 'a TCP port; an IPv6 address stands in brackets')
  .option('--unix <path>', 'a Unix socket')
  .action((instance: string, options: { kind: string; tcp?: string; unix?: string }) =>
    withDependencies(({ database }) => setEndpoint(database, instance, options)),
  );

consoleCommands
  .command('remove <instance>')
  .description('leave an instance without a console')
  .action((instance: string) => withDependencies(({ database }) => removeEndpoint(database, instance)));

/** A closed pipe (`| head`) ends the command without an error; a full disk does not, as a new key is printed only once. */
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit(0);
  console.error(`Standard output cannot be written (${code}).`);
  process.exit(1);
});

endOnSignals();
program.parseAsync().catch((failure: unknown) => {
  console.error(failure instanceof ConfigError ? failure.message : (describeFailure(failure) ?? failure));
  // Without it, an embedded database that could not be opened would keep the process alive.
  process.exit(1);
});
