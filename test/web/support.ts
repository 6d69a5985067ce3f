import { mkdirSync } from 'node:fs';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { openDemoConsole } from '../../demo/console.ts';
import type { DemoFile } from '../../demo/file.ts';
import { type DemoRole, project, users } from '../../demo/people.ts';
import type { App } from '../../src/app.ts';
import { copyTemplate, isPostgres, needPostgres, startApp } from '../support/app.ts';
import { openBalancer } from '../support/balancer.ts';
import { findBarriers as findBarriersBy } from '../support/barriers.ts';
import { findBrowser } from '../support/browser.ts';
import { setEndpoint } from '../support/console.ts';
import { openRedis } from '../support/redis.ts';
import { type Fleet, openFleet } from '../support/replicas.ts';
import { execute } from '../support/sql.ts';

const screenshots = fileURLToPath(new URL('generated/', import.meta.url));
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic', '--no-first-run'];

/** A server with the demo, and a browser beside it. */
export interface DeskTest {
  readonly baseUrl: string;
  readonly demo: DemoFile;
  /** Two replicas on PostgreSQL; null on the embedded database. */
  readonly fleet: Fleet | null;
  /** The server on the embedded database; null on replicas. */
  readonly app: App | null;
  /** A page in a browser context of its own: nothing is shared with another, as between two people. */
  open(options?: BrowserContextOptions): Promise<Page>;
  /** Another tab of the same person, signed in alike. */
  openTab(page: Page, path: string): Promise<Page>;
  /** Signs in as the person of the demo does, and goes to a path of the desk. */
  signIn(page: Page, role: DemoRole, path?: string): Promise<void>;
  /** `/projects/…` of the demo's main project, with what follows. */
  toPage(rest?: string): string;
  graphql<Data = never>(query: string, variables?: object, role?: DemoRole): Promise<Data>;
  /** The same with a credential: some things are for sessions alone. */
  graphqlAs<Data = never>(credential: string, query: string, variables?: object): Promise<Data>;
  /** Sends a request with a user's API key. */
  ask(method: string, path: string, role?: DemoRole, body?: unknown): Promise<{ status: number; json: unknown }>;
  /** The log of the server; on replicas, each has its own. */
  readonly logLines: readonly string[];
  /** Whatever a page asked of another host, and whatever it complained of: both are to be empty at the end. */
  readonly elsewhere: string[];
  readonly complaints: string[];
  /** Writes where the console of an instance listens, as an operator does. */
  setConsole(instanceId: string, endpoint: { readonly kind: 'serial' | 'vnc'; readonly port: number }): Promise<void>;
  /** Keeps a picture for people to look at: test/web/generated/<name>.png. */
  look(page: Page, name: string): Promise<void>;
  close(): Promise<void>;
}

/** On the embedded database, or on two replicas with a PostgreSQL and a Redis behind a balancer. */
export async function startDesk(env: Record<string, string> = {}): Promise<DeskTest> {
  mkdirSync(screenshots, { recursive: true });
  const settings = { RATE_LIMIT_PAGES: '1000000', RATE_LIMIT_USER: '1000000', RATE_LIMIT_ANONYMOUS: '1000000', ...env };
  const server = isPostgres ? await startFleet(settings) : await startEmbedded(settings);
  const { baseUrl, demo } = server;
  const browser = await launchBrowser().catch(async (failure: unknown) => {
    await server.close();
    throw failure;
  });
  const [elsewhere, complaints]: string[][] = [[], []];
  const watch = (context: BrowserContext) => {
    context.on('request', (sent) => {
      const { protocol, hostname } = new URL(sent.url());
      // The page of an identity provider asks for what it likes.
      if (!sent.isNavigationRequest() && !sent.frame().url().startsWith(baseUrl)) return;
      if (!['data:', 'blob:'].includes(protocol) && !['127.0.0.1', 'localhost'].includes(hostname)) elsewhere?.push(sent.url());
    });
    context.on('page', (page) => {
      page.on('pageerror', (failure) => complaints?.push(`${page.url()}: ${failure.stack ?? failure.message}`));
      page.on('console', (message) => {
        // What the server refuses is what some of the tests are about.
        if (
          message.type() === 'error' &&
          page.url().startsWith(baseUrl) &&
          !/Failed to load resource|WebSocket connection|ERR_/.test(message.text())
        )
          complaints?.push(message.text());
      });
    });
  };
  const ask = (method: string, path: string, role: DemoRole = 'owner', body?: unknown) =>
    send(baseUrl + path, method, demo.users[role].api_key, body);
  const graphqlAs = async <Data>(credential: string, query: string, variables: object = {}) => {
    const { json } = await send(`${baseUrl}/graphql`, 'POST', credential, { query, variables });
    const { data, errors } = json as { data: Data; errors?: unknown };
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  };
  return {
    baseUrl,
    demo,
    fleet: server.fleet,
    app: server.app,
    logLines: server.logLines,
    elsewhere: elsewhere ?? [],
    complaints: complaints ?? [],
    async open(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      context.setDefaultTimeout(60_000);
      watch(context);
      return context.newPage();
    },
    async openTab(page, path) {
      const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }));
      const tab = await page.context().newPage();
      await tab.goto(`${baseUrl}/icon.svg`);
      await tab.evaluate((text) => {
        for (const [name, value] of Object.entries<string>(JSON.parse(text))) sessionStorage.setItem(name, value);
      }, kept);
      await tab.goto(baseUrl + path);
      return tab;
    },
    async signIn(page, role, path = `/projects/${demo.project_id}`) {
      await page.goto(`${baseUrl}/signin?to=${encodeURIComponent(path)}`);
      if (isPostgres) {
        await page.getByLabel('API key or session token').fill(demo.users[role].token ?? '');
        await page.getByRole('button', { name: 'Sign in' }).click();
      } else {
        await page.getByRole('button', { name: users[role].email }).click();
      }
      await page.waitForURL(baseUrl + path);
    },
    toPage: (rest = '') => `/projects/${demo.project_id}${rest && `/${rest}`}`,
    graphql: (query, variables, role = 'owner') => graphqlAs(demo.users[role].api_key, query, variables),
    graphqlAs,
    ask,
    setConsole: server.setConsole,
    look: async (page, name) => void (await page.screenshot({ path: `${screenshots}${name}.png` })),
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findBrowser(),
    // No name is resolved: whatever is not on this machine would fail, and be reported in `elsewhere`.
    args: ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost', ...quiet],
  });
}

async function startEmbedded(env: Record<string, string>) {
  const { app, baseUrl, demo, logLines, close } = await startApp(env);
  // As main.ts does it.
  await openDemoConsole(app.database);
  app.offerDemo({ people: Object.values(users), projectId: project.id });
  const setConsole: DeskTest['setConsole'] = (instanceId, endpoint) => setEndpoint({ app }, instanceId, endpoint);
  return { baseUrl, demo, logLines, fleet: null, app, setConsole, close };
}

async function startFleet(env: Record<string, string>) {
  const origin = needPostgres();
  const closings: Array<() => Promise<unknown>> = [];
  /** Closes what has been opened, which is not all of it if the start fails. */
  const close = async () => {
    for (const closing of closings) await closing();
  };
  try {
    const databaseUrl = await copyTemplate();
    closings.unshift(() => execute(origin.server, `DROP DATABASE ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`));
    const redis = await openRedis();
    closings.unshift(redis.close);
    const fleet = await openFleet({ count: 2, databaseUrl, redisUrl: redis.url, env });
    closings.unshift(fleet.close);
    const balancer = await openBalancer(fleet.replicas);
    closings.unshift(balancer.close);
    const setConsole: DeskTest['setConsole'] = async (instanceId, { kind, port }) => {
      const values = `'${instanceId}', '${kind}', '127.0.0.1', ${port}`;
      await execute(
        databaseUrl,
        `INSERT INTO console_endpoints (instance_id, kind, host, port) VALUES (${values})
        ON CONFLICT (instance_id) DO UPDATE SET kind = excluded.kind, host = excluded.host, port = excluded.port, socket_path = NULL`,
      );
    };
    return { baseUrl: balancer.baseUrl, demo: fleet.demo, logLines: [] as string[], fleet, app: null, setConsole, close };
  } catch (failure) {
    await close();
    throw failure;
  }
}

function send(url: string, method: string, key: string, body?: unknown): Promise<{ status: number; json: unknown }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) };
    const sent = request(url, { method, headers, agent: false }, async (response) => {
      const parts: Buffer[] = [];
      for await (const part of response) parts.push(part);
      const text = Buffer.concat(parts).toString();
      resolve({ status: response.statusCode ?? 0, json: text ? JSON.parse(text) : null });
    });
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** What axe finds that is serious or critical on the page as it is, by all of its rules unless some are named. */
export const findBarriers = async (page: Page, rules?: readonly string[]): Promise<string[]> =>
  findBarriersBy(page, (await import('axe-core')).default.source, rules);

export type { Browser, Page };
