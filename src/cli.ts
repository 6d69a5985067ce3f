import { Command } from 'commander';
import { refreshDemoFile } from '../demo/file.ts';
import { seedDemo } from '../demo/seed.ts';
import { addApiKey, addMember, addOrganization, addProject, addUser, findActiveUser } from './accounts/provision.ts';
import { type App, createApp } from './app.ts';
import { ConfigError, demoFilePath, readConfig } from './config.ts';
import { removeEndpoint, setEndpoint } from './consoles/provision.ts';
import { describeFailure, OperatorError } from './platform/operatorerror.ts';
import { endOnSignals } from './platform/signals.ts';

const DAY_SECONDS = 86_400;

/** Runs one command against the configured database, which is migrated first. */
async function withApp(work: (app: App) => Promise<string>): Promise<void> {
  const app = await createApp({ ...readConfig(process.env), redis: null, trusted: null, drainSeconds: 0, logLevel: 'error' });
  try {
    console.log(await work(app));
  } finally {
    await app.close();
  }
}

const program = new Command('portico')
  .description("The operator's commands. They work on the database that the environment names (see README.md).")
  .addHelpText('after', '\nThe client package has a program of the same name, for users of a server: npx portico --help (docs/cli.md)');

program
  .command('token <email>')
  .description('print a session token of a user, good for a day')
  .action((email: string) =>
    withApp(async (app) => {
      const { id } = await findActiveUser(app.database, email);
      if (!app.tokens.local) throw new OperatorError('The identity provider of JWT_JWKS_URL signs the tokens: ask it for one.');
      return app.tokens.local.sign(id, DAY_SECONDS);
    }),
  );

program
  .command('api-key <email>')
  .description('make an API key for a user and print it; it is shown only here')
  .requiredOption('--name <name>', 'what the key is for')
  .action((email: string, { name }: { name: string }) => withApp(({ database }) => addApiKey(database, { email, name })));

program
  .command('migrate')
  .description('bring the database up to the newest migration')
  .action(() => withApp(async () => 'The database is up to date.'));

program
  .command('seed')
  .description('fill the database with the demo data; a second time changes nothing')
  .action(() =>
    withApp(async ({ database, tokens }) => {
      const config = readConfig(process.env);
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

program
  .command('user')
  .description('the people who may sign in')
  .command('add <email>')
  .description('add a user and print the id')
  .requiredOption('--name <name>', 'as others see it')
  .option('--id <uuid>', 'the `sub` of the tokens that an identity provider signs for them')
  .action((email: string, options: { name: string; id?: string }) =>
    withApp(async ({ database }) => (await addUser(database, { email, ...options })).id),
  );

program
  .command('organization')
  .description('the owners of projects')
  .command('add <name>')
  .description('add an organization and print the id')
  .requiredOption('--owner <email>', 'its first owner')
  .option('--currency <code>', 'three letters', 'EUR')
  .action((name: string, options: { owner: string; currency: string }) =>
    withApp(async ({ database }) => (await addOrganization(database, { name, ...options })).id),
  );

program
  .command('project')
  .description('what holds all resources')
  .command('add <name>')
  .description('add a project and print the id')
  .requiredOption('--organization <uuid>', 'whose it is')
  .action((name: string, options: { organization: string }) =>
    withApp(async ({ database }) => (await addProject(database, { name, ...options })).id),
  );

program
  .command('member')
  .description('who may do what')
  .command('add <email>')
  .description('give a user a role in an organization, or in one of its projects; a second time changes it')
  .requiredOption('--organization <uuid>', 'the organization')
  .requiredOption('--role <role>', 'owner, admin or member; in a project viewer, member or admin')
  .option('--project <uuid>', 'the project')
  .action((email: string, options: { organization: string; role: string; project?: string }) =>
    withApp(({ database }) => addMember(database, { email, ...options })),
  );

const consoleCommands = program.command('console').description('where the consoles of instances listen');

consoleCommands
  .command('set <instance>')
  .description('say where the console of an instance listens; a second time changes it, and closes what is open')
  .requiredOption('--kind <kind>', 'serial or vnc')
  .option('--tcp <host:port>', 'a TCP port; an IPv6 address stands in brackets')
  .option('--unix <path>', 'a Unix socket')
  .action((instance: string, options: { kind: string; tcp?: string; unix?: string }) =>
    withApp(({ database }) => setEndpoint(database, instance, options)),
  );

consoleCommands
  .command('remove <instance>')
  .description('leave an instance without a console')
  .action((instance: string) => withApp(({ database }) => removeEndpoint(database, instance)));

endOnSignals();
program.parseAsync().catch((failure: unknown) => {
  console.error(failure instanceof ConfigError ? failure.message : (describeFailure(failure) ?? failure));
  // Without it, an embedded database that could not be opened would keep the process alive.
  process.exit(1);
});
