/** What a page may load and where it may send: this server, and nothing else. */
export function contentPolicy(more: Readonly<Record<string, string>> = {}): string {
  const rules = { 'default-src': "'none'", 'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'self'", ...more };
  return Object.entries(rules)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}

export interface Page {
  readonly html: string;
  readonly policy: string;
}

export const homePage: Page = {
  policy: contentPolicy({ 'style-src': "'unsafe-inline'" }),
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Portico</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem; color: #1d2733; background: #fff }
  h1 { font-size: 2rem; margin: 0 }
  dt { margin-top: 1.25rem; font-weight: 600 }
  dd { margin: 0 }
  a { color: #0b5cad }
  code { background: #eef2f6; padding: .1rem .3rem; border-radius: .2rem }
</style>
</head>
<body>
<h1>Portico</h1>
<p>The API gateway of a cloud provider: notifications, monitoring dashboards, a compute overview, backup trials and WebSocket tickets.</p>
<dl>
  <dt><a href="docs">Reference of v1 REST</a></dt>
  <dd>Every operation, to read and to try. The document itself: <a href="v1/openapi.json">OpenAPI</a>.</dd>
  <dt><a href="graphql">GraphiQL</a></dt>
  <dd>The GraphQL schema, queries and a live subscription to try. Programs send <code>POST /graphql</code>.</dd>
  <dt><a href="v1/asyncapi.json">AsyncAPI</a></dt>
  <dd>The live feed of notifications as plain JSON over WebSocket.</dd>
</dl>
<p>Every request takes <code>Authorization: Bearer …</code> with a session token or an API key. Those of the demo are in the file
<code>demo.json</code> of the data folder.</p>
</body>
</html>
`,
};

export const referencePage: Page = {
  // Swagger UI sets styles on elements, and has its icons in data URLs.
  policy: contentPolicy({
    'script-src': "'self'",
    'style-src': "'self' 'unsafe-inline'",
    'img-src': "'self' data:",
    'connect-src': "'self'",
  }),
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Portico: reference of v1</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`,
};

export const referenceScript = `SwaggerUIBundle({
  url: 'v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  // Swagger's own validator lives elsewhere.
  validatorUrl: null,
});
`;
