import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Router } from 'express';
import type { Tokens } from '../../access/tokens.ts';
import { Fault } from '../../kernel/fault.ts';
import { isLoopbackHost, normalizeHost } from '../../platform/host.ts';
import { packageRoot } from '../../platform/packageroot.ts';
import { exchangeOf, type Middleware } from '../http/exchange.ts';
import { sendJson } from '../http/send.ts';
import { readPath } from '../http/url.ts';
import { serveAsset } from './asset.ts';
import { contentPolicy } from './pagestyle.ts';

/** The users of the demo, as whom a visitor signs in with a click, and the project to show. */
export interface DemoOffer {
  readonly people: ReadonlyArray<{ readonly id: string; readonly name: string; readonly email: string }>;
  readonly projectId: string;
}

export interface DeskDependencies {
  readonly tokens: Tokens;
  /** Null where there is no demo, or where the database is not embedded. */
  readonly demoOffer: () => DemoOffer | null;
  readonly config: {
    readonly identityProvider: {
      readonly jwksUrl: string;
      readonly issuer: string;
      readonly audience: string;
      readonly clientId: string | null;
    } | null;
  };
}

/** The lifetime of a demo session; the desk renews it before. */
const DEMO_SESSION_SECONDS = 3600;

/** The paths of the desk's pages: one document, which shows a page by its address. */
const pages = ['/signin', '/signin/callback', '/keys', '/developers', '/developers/*page', '/projects/:id', '/projects/:id/*page'];

/** Next to the code in a build; for code that runs from its sources, the desk of the last build. Null without either. */
const folder = [new URL('./web/', import.meta.url), new URL('dist/current/web/', packageRoot)].find((url) => existsSync(url)) ?? null;

/** Adds the desk: its document at each of its paths, its assets, and the endpoints that it needs before sign-in. */
export function addDesk(router: Router, dependencies: DeskDependencies, charge: Middleware): void {
  router.get('/desk/settings', charge, (request, response) =>
    sendJson(response, 200, readSettings(dependencies, request), { 'Cache-Control': 'no-store' }),
  );
  router.post('/desk/demo', charge, async (request, response) => {
    const { local } = dependencies.tokens;
    const offer = findOffer(dependencies, request);
    // Without an offer the body is not read.
    if (!offer || !local) throw Fault.notFound();
    const { user_id: userId } = await exchangeOf(request).readBody();
    const person = offer.people.find(({ id }) => id === userId);
    if (!person) throw Fault.notFound();
    const expires = new Date(Math.floor(Date.now() / 1000 + DEMO_SESSION_SECONDS) * 1000);
    const token = await local.sign(person.id, DEMO_SESSION_SECONDS);
    sendJson(response, 200, { token, expires: expires.toISOString() }, { 'Cache-Control': 'no-store' });
  });
  if (!folder) return;
  const document = deskDocument(dependencies);
  for (const path of pages) router.get(path, charge, document);
  const assets = createAssets(folder);
  router.get(['/icon.svg', '/assets/:name'], charge, (request, response, next) => {
    const serve = assets.get(readPath(request.url));
    return serve ? serve(request, response, next) : next(Fault.notFound());
  });
}

/** Serves the document of the desk, for `/` too; 404 where the desk has not been built. */
export function deskDocument({ config }: Pick<DeskDependencies, 'config'>): Middleware {
  if (!folder) return (_request, _response, next) => next(Fault.notFound());
  const document = new URL('index.html', folder);
  const provider = config.identityProvider?.clientId ? config.identityProvider : null;
  const providerOrigins = provider ? [...new Set([provider.issuer, provider.jwksUrl].map((url) => new URL(url).origin))] : [];
  const policy = contentPolicy({
    'script-src': "'self'",
    // Editors and terminals add their own styles.
    'style-src': "'self' 'unsafe-inline'",
    'img-src': "'self' data:",
    'font-src': "'self' data:",
    'connect-src': ["'self'", ...providerOrigins].join(' '),
    'frame-ancestors': "'none'",
  });
  return serveAsset({
    mediaType: 'text/html; charset=utf-8',
    // `Vary: Accept`, as programs get JSON at `/`.
    headers: { 'Content-Security-Policy': policy, 'Cache-Control': 'no-cache', Vary: 'Accept, Accept-Encoding' },
    load: () => readFile(document),
  });
}

const mediaTypes: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
};

/** Vite names assets by a hash of their content. */
const immutable = { 'Cache-Control': 'public, max-age=31536000, immutable' };

/** The handler of each asset by path. The folder is listed once, so that no request path can reach other files. */
function createAssets(from: URL): ReadonlyMap<string, Middleware> {
  const serve = (name: string, headers: Readonly<Record<string, string>>): [string, Middleware] => {
    const url = new URL(name, from);
    const compressed = new URL(`${name}.br`, from);
    const mediaType = mediaTypes[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
    const loadBrotli = existsSync(compressed) ? () => readFile(compressed) : undefined;
    return [`/${name}`, serveAsset({ mediaType, headers, load: () => readFile(url), loadBrotli })];
  };
  const names = readdirSync(new URL('assets/', from)).filter((name) => !name.endsWith('.br'));
  return new Map([serve('icon.svg', { 'Cache-Control': 'max-age=300' }), ...names.map((name) => serve(`assets/${name}`, immutable))]);
}

function readSettings(dependencies: DeskDependencies, request: IncomingMessage) {
  const { identityProvider: provider } = dependencies.config;
  const offer = findOffer(dependencies, request);
  return {
    demo: offer && { people: offer.people, project_id: offer.projectId },
    identity_provider: provider?.clientId ? { issuer: provider.issuer, client_id: provider.clientId, audience: provider.audience } : null,
  };
}

const forwardingHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

/**
 * The offer for this machine alone: null for other machines, clients of a proxy on this machine, and pages of other hosts, and where an
 * identity provider signs the tokens.
 */
function findOffer({ demoOffer, tokens }: DeskDependencies, request: IncomingMessage): DemoOffer | null {
  const { headers, socket } = request;
  const isLocal = isLoopbackHost(socket.remoteAddress ?? '') && !forwardingHeaders.some((name) => name in headers);
  const host = `http://${headers.host ?? ''}`;
  if (!tokens.local || !isLocal || !URL.canParse(host)) return null;
  const { hostname, origin } = new URL(host);
  const isOwnPage = headers.origin === undefined || headers.origin === origin;
  return isOwnPage && isLoopbackHost(normalizeHost(hostname)) ? demoOffer() : null;
}
