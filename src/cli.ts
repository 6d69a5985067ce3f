import { Command } from 'commander';
import { generateKey } from './access/apikey.ts';
import { type App, createApp } from './app.ts';
import { ConfigError, demoFile, readConfig } from './config.ts';
import { refreshDemoFile } from './demo/file.ts';
import { seedDemo } from './demo/seed.ts';
import { FolderOwnedError } from './platform/ownership.ts';

const DAY_SECONDS = 86_400;

/** A command that could not do what it was asked: its message is for the operator. */
class CommandError extends Error {}

/** Runs one command against the configured database, which is migrated on the way. */
async function withApp(work: (app: App) => Promise<string>): Promise<void> {
  const app = await createApp({ ...readConfig(process.env), logLevel: 'error' });
  try {
    console.log(await work(app));
  } finally {
    await app.close();
  }
}

async function findUser({ database }: App, email: string) {
  const user = await database.user.findUnique({ where: { email } });
  if (!user || user.disabledAt) throw new CommandError(`There is no active user ${email}.`);
  return user;
}

const program = new Command('portico').description('Works on the database that the environment names (see README.md).');

program
  .command('token <email>')
  .description('print a session token of a user, good for a day')
  .action((email: string) =>
    withApp(async (app) => {
      const { id } = await findUser(app, email);
      if (!app.tokens.local) throw new CommandError('The identity provider of JWT_JWKS_URL signs the tokens: ask it for one.');
      return app.tokens.local.sign(id, DAY_SECONDS);
    }),
  );

program
  .command('api-key <email>')
  .description('make an API key for a user and print it; it is shown only here')
  .requiredOption('--name <name>', 'what the key is for')
  .action((email: string, { name }: { name: string }) =>
    withApp(async (app) => {
      const { id } = await findUser(app, email);
      const { key, secretHash, hint } = generateKey();
      await app.database.apiKey.create({ data: { userId: id, name, hint, secretHash } });
      return key;
    }),
  );

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
      await refreshDemoFile({ database, tokens, baseUrl: config.publicUrl ?? `http://localhost:${config.port}`, path: demoFile(config) });
      return `${isNew ? 'The demo data is in.' : 'The demo data was there already.'} Its users and ids: ${demoFile(config)}`;
    }),
  );

program.parseAsync().catch((failure: unknown) => {
  const isExpected = failure instanceof ConfigError || failure instanceof FolderOwnedError || failure instanceof CommandError;
  console.error(isExpected ? failure.message : failure);
  process.exitCode = 1;
});
