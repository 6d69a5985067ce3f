import type { Command } from 'commander';
import { isUncertain } from './failure.ts';
import { listAll, type Part, pageInfo } from './lists.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { note, type Style, writeLine, writeTable, writeValue } from './output.ts';
import { formatTime } from './text.ts';

interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly hint: string;
  readonly created: string;
  readonly last_used: string | null;
  readonly expires: string | null;
  readonly revoked: string | null;
}

const keyFields = 'id name hint created last_used: lastUsed expires revoked';

export function addKeys(program: Command): void {
  const keys = program.command('keys').description('your API keys; a session token manages them, an API key does not');

  keys
    .command('list')
    .description('list your API keys, the newest first')
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const session = await openSession(options);
      const document = `query ($after: String) { viewer { apiKeys(first: 100, after: $after) { nodes { ${keyFields} } ${pageInfo} } } }`;
      type Data = { viewer: { apiKeys: Part<ApiKey> } };
      const all = await listAll(async (after) => (await session.query<Data>(document, { after })).viewer.apiKeys);
      if (options.json) return writeValue(all);
      const rows = all.map((key) => [
        key.name,
        key.hint,
        stateOf(key),
        formatTime(key.created),
        key.last_used ? formatTime(key.last_used) : 'never',
        key.id,
      ]);
      await writeTable(['NAME', 'KEY', 'STATE', 'CREATED (UTC)', 'LAST USED', 'ID'], rows);
    });

  keys
    .command('create <name>')
    .description('make an API key and print it: it is shown only here')
    .option('--expires <date>', 'until when it is good, such as 2027-01-31T00:00:00Z; without it until it is revoked')
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { readonly expires?: string }>();
      const session = await openSession(options);
      const document = `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key api_key: apiKey { ${keyFields} } } }`;
      type Data = { createApiKey: { key: string; api_key: ApiKey } };
      const input = { name, expires: options.expires, idempotencyKey: crypto.randomUUID() };
      const { createApiKey } = await session.query<Data>(document, { input }).catch((failure: unknown) => {
        if (isUncertain(failure))
          note('Whether the key was made is not known: “portico keys list” shows it, “portico keys revoke” ends it.');
        throw failure;
      });
      if (options.json) return writeValue(createApiKey);
      await writeLine(createApiKey.key);
      note(`Its id is ${createApiKey.api_key.id}. The key is not shown again.`);
    });

  keys
    .command('revoke <id>')
    .description('end an API key at once')
    .action(async (id: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const session = await openSession(options);
      const document = `mutation ($input: RevokeApiKeyInput!) { revokeApiKey(input: $input) { api_key: apiKey { ${keyFields} } } }`;
      const input = { id, idempotencyKey: crypto.randomUUID() };
      const { revokeApiKey } = await session.query<{ revokeApiKey: { api_key: ApiKey } }>(document, { input });
      if (options.json) return writeValue(revokeApiKey.api_key);
      await writeLine(`${revokeApiKey.api_key.name} counts no more.`);
    });
}

function stateOf({ revoked, expires }: ApiKey): { text: string; style: Style | null } {
  if (revoked) return { text: 'revoked', style: 'dim' };
  if (expires && Date.parse(expires) <= Date.now()) return { text: 'expired', style: 'dim' };
  return { text: expires ? `good until ${formatTime(expires)}` : 'good', style: 'green' };
}
