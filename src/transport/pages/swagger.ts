import { deskSession, signedInStyle } from './desksession.ts';
import { contentPolicy } from './pagestyle.ts';

/** Replacements for those of Swagger UI's colours that have a contrast below 4.5:1. */
const colours = `
  .swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1a67b3 }
  .swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1b7a4b }
  .swagger-ui .opblock.opblock-put .opblock-summary-method { background: #985400 }
  .swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #c62828 }
  .swagger-ui .info .title small { background: #5a6270 }
  .swagger-ui .info .title small.version-stamp { background: #4a6a00 }
  .swagger-ui .info .link .url, .swagger-ui .info .url { color: #1a67b3 }
  .swagger-ui .btn.authorize { color: #1b7a4b; border-color: #1b7a4b }
  .swagger-ui .btn.authorize svg { fill: #1b7a4b }
  .swagger-ui .btn.cancel { color: #b71c1c; border-color: #b71c1c }
  .swagger-ui .btn.execute { background: #1a67b3; border-color: #1a67b3 }
  .swagger-ui .download-contents { background: #4a5160 }
  .swagger-ui .parameter__in, .swagger-ui .parameter__deprecated, .swagger-ui .prop-format { color: #595959 }
  .swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: #6d00cc }
  .swagger-ui .json-schema-2020-12-expand-deep-button { color: #4a4a4a }
  .swagger-ui .microlight span[style*="211, 99, 99"] { color: #ffa3a3 !important }`;

/** Swagger UI sets styles on elements, and has its icons in data URLs. */
export const referencePolicy = contentPolicy({
  'script-src': "'self'",
  'style-src': "'self' 'unsafe-inline'",
  'img-src': "'self' data:",
  'connect-src': "'self'",
});

export const referencePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Portico: reference of v1</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
<style>
  /* It would link to another site's list of licences, which has none of this name. */
  .swagger-ui .info__license { display: none }${colours}${signedInStyle}
  .signed-in { margin: -8px -8px 0 }
  @media (prefers-reduced-motion: reduce) { .swagger-ui * { transition: none !important; animation: none !important } }
</style>
</head>
<body>
<div id="reference"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

export const referenceScript = `${deskSession}
const methods = ['get', 'post', 'put', 'delete'];

/** A link within a button, which opens the same, is text; the address still names what is open. */
const plainLinks = ({ React }) => ({ components: { DeepLink: ({ text }) => React.createElement('span', null, text) } });

/** Elements that Swagger UI leaves without a name get one, and those that scroll can be reached with the keyboard. */
const names = {
  '#servers': () => 'Server',
  '.examples-select-element': () => 'Example',
  '.content-type': () => 'Media type',
  'textarea.body-param__text': () => 'Request body',
  'textarea.curl': () => 'curl',
  '.parameters select:not(.examples-select-element)': (select) => select.closest('[data-param-name]')?.dataset.paramName ?? 'Value',
  '.close-modal': () => 'Close',
  '.copy-to-clipboard > button': () => 'Copy',
  '.modal-btn.auth': (button) => button.textContent,
};
function complete() {
  for (const [selector, nameOf] of Object.entries(names)) {
    for (const element of document.querySelectorAll('#reference ' + selector)) {
      const name = nameOf(element);
      if (element.getAttribute('aria-label') !== name) element.setAttribute('aria-label', name);
    }
  }
  for (const block of document.querySelectorAll('#reference pre.microlight:not([tabindex])')) block.tabIndex = 0;
}
new MutationObserver(complete).observe(document.getElementById('reference'), { childList: true, subtree: true });

/** The desk's credential, which the page uses for its requests until the reader enters another; null without one. */
let given = null;
const ui = SwaggerUIBundle({
  url: 'v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  plugins: [plainLinks],
  // A reader who tries them from the top reads and writes before deleting anything.
  operationsSorter: (first, second) => methods.indexOf(first.get('method')) - methods.indexOf(second.get('method')),
  // Swagger's own validator lives elsewhere.
  validatorUrl: null,
  onComplete() {
    given = desk.session()?.credential ?? null;
    if (given) ui.preauthorizeApiKey('bearer', given);
  },
  // The session may have been renewed since, or have ended with the desk.
  requestInterceptor(request) {
    if (!given || request.headers.Authorization !== 'Bearer ' + given) return request;
    const credential = desk.session()?.credential;
    if (credential) request.headers.Authorization = 'Bearer ' + credential;
    else delete request.headers.Authorization;
    return request;
  },
});
// Swagger UI keeps the credential in memory too.
addEventListener('portico:signed-out', () => {
  if (given) ui.authActions.logout(['bearer']);
  given = null;
});
desk.showUser();
`;
