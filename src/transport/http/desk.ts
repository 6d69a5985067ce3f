import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Router } from 'express';
import ipaddr from 'ipaddr.js';
import type { Tokens } from '../../access/tokens.ts';
import { Fault } from '../../kernel/fault.ts';
import { root } from '../../platform/root.ts';
import { serveAsset } from './asset.ts';
import { readJsonObject } from './body.ts';
import type { Middleware } from './exchange.ts';
import { contentPolicy } from './pages.ts';
import { sendJson } from './send.ts';
import { readPath } from './url.ts';

/** The people of the demo, as whom one signs in by a click, and the project to show them. */
export interface DemoOffer {
  readonly people: ReadonlyArray<{ readonly id: string; readonly name: string; readonly email: string }>;
  readonly projectId: string;
}

export interface DeskParts {
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

/** How long a session of the demo lives, in seconds: the desk asks for the next one before. */
const DEMO_SESSION_SECONDS = 3600;

/** The pages of the desk, which are one document: the address says which of them it shows. */
const pages = ['/signin', '/signin/callback', '/keys', '/developers', '/developers/*page', '/projects/:id', '/projects/:id/*page'];

/** Beside the code in a build, and where `npm run web` puts it for the code that runs from its sources. */
const folder = [new URL('./web/', import.meta.url), new URL('web/dist/', root)].find((url) => existsSync(url)) ?? null;

/** Adds the desk: its document under each of its addresses, its assets, and what it asks before anybody is signed in. */
export function addDesk(router: Router, parts: DeskParts, admit: Middleware): void {
  router.get('/desk/settings', admit, (request, response) =>
    sendJson(response, 200, readSettings(parts, request), { 'Cache-Control': 'no-store' }),
  );
  router.post('/desk/demo', admit, async (request, response) => {
    const { local } = parts.tokens;
    const offer = findOffer(parts, request);
    // Nothing is read from those to whom nothing is offered.
    if (!offer || !local) throw Fault.notFound();
    const { user_id: userId } = await readJsonObject(request);
    const person = offer.people.find(({ id }) => id === userId);
    if (!person) throw Fault.notFound();
    const expires = new Date(Math.floor(Date.now() / 1000 + DEMO_SESSION_SECONDS) * 1000);
    const token = await local.sign(person.id, DEMO_SESSION_SECONDS);
    sendJson(response, 200, { token, expires: expires.toISOString() }, { 'Cache-Control': 'no-store' });
  });
  if (!folder) return;
  const document = deskDocument(parts, folder);
  for (const path of pages) router.get(path, admit, document);
  const assets = openAssets(folder);
  router.get(['/icon.svg', '/assets/:name'], admit, (request, response, next) => {
    const serve = assets.get(readPath(request.url));
    if (serve) serve(request, response, next);
    else next(Fault.notFound());
  });
}

/** The document of the desk, for `/` too. Answers 404 where the desk has not been built. */
export function deskDocument({ config }: Pick<DeskParts, 'config'>, from: URL | null = folder): Middleware {
  if (!from) return (_request, _response, next) => next(Fault.notFound());
  const provider = config.identityProvider?.clientId ? config.identityProvider : null;
  const elsewhere = provider ? [...new Set([provider.issuer, provider.jwksUrl].map((url) => new URL(url).origin))] : [];
  const policy = contentPolicy({
    'script-src': "'self'",
    // Editors and terminals write styles of their own.
    'style-src': "'self' 'unsafe-inline'",
    'img-src': "'self' data:",
    'font-src': "'self' data:",
    'connect-src': ["'self'", ...elsewhere].join(' '),
    'frame-ancestors': "'none'",
  });
  return serveAsset({
    mediaType: 'text/html; charset=utf-8',
    // At `/`, programs get something else.
    headers: { 'Content-Security-Policy': policy, 'Cache-Control': 'no-cache', Vary: 'Accept, Accept-Encoding' },
    load: () => readFile(new URL('index.html', from)),
  });
}

const mediaTypes: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
};

/** What Vite names by its content never changes. */
const forEver = { 'Cache-Control': 'public, max-age=31536000, immutable' };

/** What serves each asset, by its path: they are listed once, so that a path is no way to other files. */
function openAssets(from: URL): ReadonlyMap<string, Middleware> {
  const open = (name: string, headers: Readonly<Record<string, string>>): [string, Middleware] => {
    const url = new URL(name, from);
    const compressed = new URL(`${name}.br`, from);
    const mediaType = mediaTypes[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
    const loadBrotli = existsSync(compressed) ? () => readFile(compressed) : undefined;
    return [`/${name}`, serveAsset({ mediaType, headers, load: () => readFile(url), loadBrotli })];
  };
  const names = readdirSync(new URL('assets/', from)).filter((name) => !name.endsWith('.br'));
  return new Map([open('icon.svg', { 'Cache-Control': 'max-age=300' }), ...names.map((name) => open(`assets/${name}`, forEver))]);
}

function readSettings(parts: DeskParts, request: IncomingMessage) {
  const { identityProvider: provider } = parts.config;
  const offer = findOffer(parts, request);
  return {
    demo: offer && { people: offer.people, project_id: offer.projectId },
    identity_provider: provider?.clientId ? { issuer: provider.issuer, client_id: provider.clientId, audience: provider.audience } : null,
  };
}

/** A page of another host must not get a session of the demo, nor another machine, nor whoever a proxy of this machine speaks for. */
const forwarding = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

function findOffer({ demoOffer }: DeskParts, request: IncomingMessage): DemoOffer | null {
  const { headers, socket } = request;
  const isHere = isLoopback(socket.remoteAddress ?? '') && !forwarding.some((name) => name in headers);
  const host = `http://${headers.host ?? ''}`;
  const isNamedSo = URL.canParse(host) && isLoopbackName(new URL(host).hostname);
  const isOwnPage = headers.origin === undefined || (isNamedSo && headers.origin === new URL(host).origin);
  return isHere && isNamedSo && isOwnPage ? demoOffer() : null;
}

const isLoopback = (address: string) => ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
const isLoopbackName = (name: string) => name === 'localhost' || isLoopback(name.replace(/^\[|\]$/g, ''));
