import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, vi } from 'vitest';
import { type DemoFile, refreshDemoFile } from '../../demo/file.ts';
import { type App, createApp } from '../../src/app.ts';
import { type Config, demoFilePath, readConfig } from '../../src/config.ts';
import { createLogger } from '../../src/platform/logger.ts';
import { copyTemplate } from './copies.ts';
import { redisSettings } from './redis.ts';
import { openSnapshot } from './snapshot.ts';
import { execute } from './sql.ts';
import { witness } from './witness.ts';

// A test that starts no app in its own process imports these from where they are, which takes a tenth of the time.
export { copyTemplate, isPostgres, needPostgres } from './copies.ts';

export interface TestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body exactly as received. */
  readonly text: string;
  /** Parsed, or undefined where the response has no body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests inspect responses of every shape
  readonly json: any;
}

export interface Ask {
  /** A user of the demo, whose session token is sent; a literal credential; null for no credential. */
  readonly as?: 'owner' | 'admin' | 'member' | 'viewer' | 'outsider' | { readonly bearer: string } | null;
  readonly headers?: OutgoingHttpHeaders | readonly string[];
  /** Strings and buffers are sent unchanged, everything else as JSON; undefined sends no body. */
  readonly body?: unknown;
}

export interface TestApp {
  readonly app: App;
  readonly config: Config;
  readonly demo: DemoFile;
  readonly baseUrl: string;
  /** The app's PostgreSQL database, for statements over a separate connection; null on PGlite. */
  readonly databaseUrl: string | null;
  /** Every SQL statement since the last `splice`. */
  readonly statements: string[];
  /** Calls back with every statement from now on, and its values. */
  listen(listener: (sql: string, values: readonly unknown[]) => void): void;
  /** Every line of the log. */
  readonly logLines: string[];
  /** `/v1/…` of the demo's main project, without the trailing slash. */
  readonly projectPath: string;
  ask(method: string, path: string, ask?: Ask): Promise<TestResponse>;
  graphql(query: string, variables?: Record<string, unknown>, ask?: Omit<Ask, 'body'>): Promise<TestResponse>;
  /** Throws if an operation is still under way, which would be one less for its user for ever. */
  close(): Promise<void>;
}

/** Starts an app whose periodic jobs do not run, so that every statement it sends belongs to a request. */
export async function startRestingApp(env: Record<string, string> = {}): Promise<TestApp> {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  try {
    return await startApp(env);
  } finally {
    vi.useRealTimers();
  }
}

/**
 * Counts the SQL statements of a request, COMMIT included; Prisma does not report BEGIN. No time passes meanwhile: on a busy
 * machine a look-up may be late or its result too old, and it is sent a second time.
 */
export async function countStatements<Result>(
  { statements }: TestApp,
  request: () => Promise<Result>,
): Promise<{ response: Result; statements: number }> {
  statements.length = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  try {
    return { response: await request(), statements: statements.length };
  } finally {
    vi.useRealTimers();
  }
}

/** Starts the real app on its own port and its own copy of the demo database. */
export async function startApp(env: Record<string, string> = {}): Promise<TestApp> {
  const dataDir = mkdtempSync(join(tmpdir(), 'portico-test-'));
  const origin = inject('origin');
  const url = 'template' in origin ? await copyTemplate(origin) : null;
  const config = readConfig({ DATA_DIR: dataDir, DRAIN_SECONDS: '0', ...(url && { DATABASE_URL: url, ...redisSettings() }), ...env });
  const statements: string[] = [];
  const listeners: Array<(sql: string, values: readonly unknown[]) => void> = [(sql) => void statements.push(sql)];
  const logLines: string[] = [];
  const app = await createApp(config, {
    log: createLogger('debug', { write: (line) => void logLines.push(line) }),
    database: {
      onStatement: (sql, values) => {
        for (const listener of listeners) listener(sql, values);
      },
      ...('snapshot' in origin && { openEmbedded: () => openSnapshot(origin.snapshot) }),
    },
  });
  const { port } = await app.listen(0, '127.0.0.1');
  const baseUrl = `http://127.0.0.1:${port}`;
  const demo = await refreshDemoFile({ database: app.database, tokens: app.tokens, baseUrl, path: demoFilePath(config) });
  if (!demo) throw new Error('the test database has no demo');
  statements.length = 0;

  const ask = async (method: string, path: string, { as = 'owner', headers = {}, body }: Ask = {}) => {
    const bearer = as === null ? undefined : typeof as === 'string' ? demo.users[as].token : as.bearer;
    const isText = typeof body === 'string' || Buffer.isBuffer(body);
    const payload = body === undefined ? undefined : isText ? body : JSON.stringify(body);
    const all = Array.isArray(headers)
      ? headers
      : {
          ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
          ...(payload !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        };
    return witness(method, path, await send(baseUrl, method, path, all, payload));
  };
  return {
    app,
    config,
    demo,
    baseUrl,
    databaseUrl: url,
    statements,
    listen: (listener) => void listeners.push(listener),
    logLines,
    projectPath: `/v1/organizations/${demo.organization_id}/projects/${demo.project_id}`,
    ask,
    graphql: (query, variables, rest) => ask('POST', '/graphql', { ...rest, body: { query, variables } }),
    async close() {
      const isIdle = await vi.waitUntil(() => app.count().executing === 0, { timeout: 60_000 }).catch(() => false);
      await app.close();
      rmSync(dataDir, { recursive: true, force: true });
      if (url && 'server' in origin) await execute(origin.server, `DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
      if (!isIdle) throw new Error('an operation has not ended');
    },
  };
}

/** Uses Node's own client, because fetch normalizes requests that a test wants sent unchanged. */
function send(
  baseUrl: string,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders | readonly string[],
  body?: string | Buffer,
): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(baseUrl);
    const sent = httpRequest({ hostname, port, method, path, headers: headers as OutgoingHttpHeaders }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const isJson = /json/.test(response.headers['content-type'] ?? '') && text !== '';
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
