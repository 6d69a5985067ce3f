import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Router } from 'express';
import { wantsPage } from '../http/accept.ts';
import type { Middleware } from '../http/exchange.ts';
import { sendJson } from '../http/send.ts';
import { queryText } from '../http/url.ts';
import { type Asset, serveAsset } from './asset.ts';
import { graphiqlPolicy, renderGraphiql } from './graphiql.ts';
import { guides, renderGuide, renderGuideIndex, renderGuideList } from './guides.ts';
import { pagePolicy } from './pagestyle.ts';
import { referencePage, referencePolicy, referenceScript } from './swagger.ts';

const index = { name: 'Portico', graphql: '/graphql', rest: '/v1' };
/** Long enough for turning pages, short enough that a deployment shows soon. */
const cacheHeaders = { 'Cache-Control': 'max-age=300' };

const cacheable = (mediaType: string, load: Asset['load']): Asset => ({ mediaType, headers: cacheHeaders, load });
const file = (url: URL, mediaType: string): Asset => cacheable(mediaType, () => readFile(url));
const page = (policy: string, load: Asset['load'], headers: Asset['headers'] = cacheHeaders): Asset => ({
  mediaType: 'text/html; charset=utf-8',
  headers: { 'Content-Security-Policy': policy, ...headers },
  load,
});

/** The assets by path, loaded on demand. Each URL is a literal, so that the bundler copies the file into the build. */
const assets: Readonly<Record<string, Asset>> = {
  '/guides': page(pagePolicy, renderGuideList),
  '/guides.json': cacheable('application/json; charset=utf-8', renderGuideIndex),
  '/docs': page(referencePolicy, () => referencePage, {}),
  '/docs/start.js': cacheable('text/javascript; charset=utf-8', () => referenceScript),
  '/docs/swagger-ui.css': file(new URL('../../../node_modules/swagger-ui-dist/swagger-ui.css', import.meta.url), 'text/css; charset=utf-8'),
  '/docs/swagger-ui-bundle.js': file(
    new URL('../../../node_modules/swagger-ui-dist/swagger-ui-bundle.js', import.meta.url),
    'text/javascript; charset=utf-8',
  ),
  '/docs/favicon-32x32.png': file(new URL('../../../node_modules/swagger-ui-dist/favicon-32x32.png', import.meta.url), 'image/png'),
  '/v1/openapi.json': file(new URL('../../../openapi.json', import.meta.url), 'application/json; charset=utf-8'),
  '/v1/asyncapi.json': file(new URL('../../../asyncapi.json', import.meta.url), 'application/json; charset=utf-8'),
};

const guideAssets = Object.entries(guides).flatMap(
  ([name, guide]): Array<[string, Asset]> => [
    [`/guides/${name}`, page(pagePolicy, () => renderGuide(guide))],
    [`/guides/${name}.md`, file(guide.file, 'text/markdown; charset=utf-8')],
  ],
);

const graphiql = page(graphiqlPolicy, renderGraphiql, { ...cacheHeaders, Vary: 'Accept, Accept-Encoding' });

/** Adds the guides, the reference of v1 and GraphiQL, which need no credential, and `/`, where browsers get the desk. */
export function addReference(router: Router, desk: Middleware, charge: Middleware): void {
  for (const [path, asset] of [...Object.entries(assets), ...guideAssets]) router.get(path, charge, serveAsset(asset));
  router.get('/', charge, (request, response, next) =>
    wantsPage(request) ? desk(request, response, next) : sendJson(response, 200, index, { Vary: 'Accept' }),
  );
  // Other requests to this path are GraphQL.
  const skipOperations: Middleware = (request, _response, next) => next(wantsPage(request) && !hasQuery(request) ? undefined : 'route');
  router.get('/graphql', skipOperations, charge, serveAsset(graphiql));
}

function hasQuery({ url = '' }: IncomingMessage): boolean {
  return new URLSearchParams(queryText(url)).has('query');
}
