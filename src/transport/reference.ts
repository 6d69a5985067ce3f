import { fileURLToPath } from 'node:url';
import express, { type RequestHandler, type Response, type Router } from 'express';
import type { GraphQLSchema } from 'graphql';
import { sendJson } from './exchange.ts';
import { homePage, type Page, referencePage, referenceScript } from './pages.ts';
import { printAsyncApi, printOpenApi } from './rest/published.ts';
import type { BoundRoute } from './rest/route.ts';

const index = { name: 'Portico', graphql: '/graphql', rest: '/v1' };
/** Long enough to turn pages, short enough that a deploy shows. */
const CACHE_SECONDS = 300;
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

/** What tells about the service: neither counted nor closed. Nothing is loaded or made before somebody asks for it. */
export function createReference(schema: GraphQLSchema, routes: readonly BoundRoute[]): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get('/', (request, response) => {
    response.vary('Accept');
    if (request.accepts(['json', 'html']) === 'html') sendPage(response, homePage);
    else sendJson(response, 200, index);
  });
  router.get('/docs', (_request, response) => sendPage(response, referencePage));
  router.get(
    '/docs/start.js',
    sendText('text/javascript', () => referenceScript),
  );
  for (const name of assets) router.get(`/docs/${name}`, sendAsset(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`))));
  router.get(
    '/v1/openapi.json',
    sendText(
      'application/json',
      once(() => printOpenApi(schema, routes)),
    ),
  );
  router.get(
    '/v1/asyncapi.json',
    sendText(
      'application/json',
      once(() => printAsyncApi(schema)),
    ),
  );
  return router;
}

function sendPage(response: Response, { html, policy }: Page): void {
  response.type('html').set('Content-Security-Policy', policy).send(html);
}

function sendText(type: string, text: () => string): RequestHandler {
  return (_request, response) => {
    response.type(type).set('Cache-Control', `max-age=${CACHE_SECONDS}`).send(text());
  };
}

/** From the package, as a stream: the page's megabytes are never held. */
function sendAsset(path: string): RequestHandler {
  return (_request, response, next) => response.sendFile(path, { maxAge: CACHE_SECONDS * 1000 }, (failure) => failure && next(failure));
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null;
  return () => (made ??= { value: make() }).value;
}
