import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Router } from 'express';
import { graphiqlPolicy, renderGraphiql } from '../graphql/graphiql.ts';
import { type Asset, serveAsset } from './asset.ts';
import type { Middleware } from './exchange.ts';
import { guidePolicy, guides, renderGuide, renderGuideIndex, renderGuideList } from './guides.ts';
import type { HtmlPage } from './pages.ts';
import { sendJson } from './send.ts';
import { referencePage, referenceScript } from './swagger.ts';
import { queryText } from './url.ts';

const index = { name: 'Portico', graphql: '/graphql', rest: '/v1' };
const byMediaType = { Vary: 'Accept, Accept-Encoding' };
/** Long enough to turn pages, short enough that a deploy shows. */
const lasting = { 'Cache-Control': 'max-age=300' };

const file = (url: URL, mediaType: string): Asset => ({ mediaType, headers: lasting, load: () => readFile(url) });
const html = ({ html, policy }: HtmlPage, more: Readonly<Record<string, string>> = {}): Asset => ({
  mediaType: 'text/html; charset=utf-8',
  headers: { 'Content-Security-Policy': policy, ...more },
  load: () => html,
});

function guideAsset(load: Asset['load']): Asset {
  return { mediaType: 'text/html; charset=utf-8', headers: { 'Content-Security-Policy': guidePolicy, ...lasting }, load };
}

/** The assets by path, loaded on demand. Each URL is written out: the bundler copies a file that is named like this into the build. */
const assets: Readonly<Record<string, Asset>> = {
  '/guides': guideAsset(renderGuideList),
  '/guides.json': { mediaType: 'application/json; charset=utf-8', headers: lasting, load: renderGuideIndex },
  '/docs': html(referencePage),
  '/docs/start.js': { mediaType: 'text/javascript; charset=utf-8', headers: lasting, load: () => referenceScript },
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
    [`/guides/${name}`, guideAsset(() => renderGuide(guide))],
    [`/guides/${name}.md`, file(guide.file, 'text/markdown; charset=utf-8')],
  ],
);

const graphiql: Asset = {
  mediaType: 'text/html; charset=utf-8',
  headers: { 'Content-Security-Policy': graphiqlPolicy, ...lasting, ...byMediaType },
  load: renderGraphiql,
};

/** Adds the guides, the reference of v1 and GraphiQL, which need no credential, and `/`, which shows people the desk. */
export function addReference(router: Router, desk: Middleware, admit: Middleware): void {
  for (const [path, asset] of [...Object.entries(assets), ...guideAssets]) router.get(path, admit, serveAsset(asset));
  router.get('/', admit, (request, response, next) =>
    wantsPage(request) ? desk(request, response, next) : sendJson(response, 200, index, { Vary: 'Accept' }),
  );
  // Whatever else asks for this path asks GraphQL.
  const choose: Middleware = (request, _response, next) => next(wantsPage(request) && !hasQuery(request) ? undefined : 'route');
  router.get('/graphql', choose, admit, serveAsset(graphiql));
}

function wantsPage(request: IncomingMessage): boolean {
  return accepts(request).type(['json', 'html']) === 'html';
}

function hasQuery({ url = '' }: IncomingMessage): boolean {
  return new URLSearchParams(queryText(url)).has('query');
}
