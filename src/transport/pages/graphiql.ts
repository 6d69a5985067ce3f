import { readFile } from 'node:fs/promises';
import { deskSession, signedInStyle } from './desksession.ts';
import { contentPolicy } from './pagestyle.ts';

/** The page has all its assets inline. */
export const graphiqlPolicy = contentPolicy({
  'script-src': "'unsafe-inline'",
  'style-src': "'unsafe-inline'",
  'img-src': 'data:',
  'font-src': 'data:',
  'connect-src': "'self'",
  'worker-src': 'blob:',
});

/** GraphiQL, some nine megabytes: loaded at the first request. */
export async function renderGraphiql(): Promise<string> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  // GraphiQL would otherwise write each query into the page's address, which answers with JSON on a reload.
  const keepAddress = { onEditQuery: null };
  const page = renderGraphiQL({
    title: 'Portico',
    headers,
    defaultTabs: await Promise.all(tabs.map(openTab)),
    inputValueDeprecation: true,
    ...keepAddress,
  });
  return page
    .replace('<head>', `<head><meta name="viewport" content="width=device-width, initial-scale=1">${style}`)
    .replace('<div id="root"></div>', `<main id="root"></main><script>${deskSession}${recall}${share}${plainTabs}</script>`);
}

const light = (body: string) =>
  `${body} :is(.graphiql-container, .graphiql-dialog) { --color-warning: 36, 100%, 28% !important; --color-info: 208, 100%, 38% !important }`;
/** Line numbers, and comments (`mtk8` in the editor). */
const dark = (body: string) =>
  `${body} .monaco-editor .line-numbers { color: #a3a3a3 !important } ${body} .monaco-editor .mtk8 { color: #8fbf7a }`;

/**
 * GraphiQL moves a tab while it is pressed, so that the pointer may be released outside of it and the click is lost: it stays
 * in place here. Colours replace those of GraphiQL with a contrast below 4.5:1.
 */
const style = `<style>${signedInStyle}
.signed-in + noscript + main, .signed-in + noscript + main .graphiql-container { height: calc(100dvh - 29px) }
.graphiql-tab { transform: none !important }
.graphiql-logo, .graphiql-logo * { color: hsl(var(--color-neutral)) !important }
.graphiql-doc-explorer-type-name { text-decoration: underline !important }
${light('body.graphiql-light')}
${dark('body.graphiql-dark')}
@media (prefers-color-scheme: light) { ${light('body:not(.graphiql-dark)')} }
@media (prefers-color-scheme: dark) { ${dark('body:not(.graphiql-light)')} }
</style>`;

/** A screen reader does not find the buttons within an ARIA tab: the tabs become a list with a current item. */
const plainTabs = `{
  const complete = () => {
    for (const list of document.querySelectorAll('.graphiql-tabs[role=tablist]')) list.setAttribute('role', 'list');
    for (const tab of document.querySelectorAll('.graphiql-tab[aria-selected]')) {
      tab.querySelector('button').setAttribute('aria-current', tab.getAttribute('aria-selected'));
      tab.setAttribute('role', 'listitem');
      tab.removeAttribute('aria-selected');
    }
  };
  new MutationObserver(complete).observe(document, { childList: true, subtree: true, attributeFilter: ['aria-selected'] });
}`;

/** GraphiQL restores its tabs, but adds an empty one unless the stored query, variables and headers equal those of the active tab. */
const recall = `{
  const { tabs = [], activeTabIndex = 0 } = JSON.parse(localStorage.getItem('graphiql:tabState') || '{}');
  for (const name of ['query', 'variables', 'headers']) {
    const value = tabs[activeTabIndex]?.[name];
    if (value) localStorage.setItem('graphiql:' + name, value);
    else localStorage.removeItem('graphiql:' + name);
  }
}`;

/** A tab without an Authorization header uses another tab's, or else the session of the desk. */
const share = `{
  const send = window.fetch;
  const find = () => {
    const { tabs = [] } = JSON.parse(localStorage.getItem('graphiql:tabState') || '{}');
    for (const { headers } of tabs) {
      const [, value] = /(?:^|[{,])\\s*"Authorization"\\s*:\\s*"([^"\\n]+)"/im.exec(headers || '') || [];
      if (value) return value;
    }
    const session = desk.session();
    return session && 'Bearer ' + session.credential;
  };
  window.fetch = (target, options = {}) => {
    const headers = new Headers(options.headers);
    const shared = headers.has('authorization') ? null : find();
    if (shared) headers.set('authorization', shared);
    return send(target, { ...options, headers });
  };
  desk.showUser();
}`;

/** The initial headers of each tab: a comment, so that the schema loads before there is a token. */
const headers = `{
  // Remove the slashes, and put a token or a key here. It counts in
  // every tab, and this browser keeps it (localStorage) until you
  // remove it:
  // "Authorization": "Bearer …"
}`;

/** The demo's main project: its ids are the same on every machine. */
export const demoProject = {
  organizationId: '019b76da-a800-7f80-b447-2b4165543001',
  projectId: '019b76da-a800-7699-b853-3a4a1bd868a0',
};

/** The initial tabs. Each URL is a literal, so that the bundler copies the file into the build. */
const tabs: ReadonlyArray<{ readonly document: URL; readonly variables?: object }> = [
  { document: new URL('./tabs/viewer.graphql', import.meta.url) },
  { document: new URL('./tabs/overview.graphql', import.meta.url), variables: demoProject },
  { document: new URL('./tabs/feed.graphql', import.meta.url), variables: { ...demoProject, after: 148 } },
  {
    document: new URL('./tabs/publish.graphql', import.meta.url),
    variables: { input: { ...demoProject, kind: 'maintenance.scheduled', severity: 'info', title: 'Published from GraphiQL' } },
  },
];

async function openTab({ document, variables }: (typeof tabs)[number]) {
  return { headers, query: await readFile(document, 'utf8'), ...(variables && { variables: JSON.stringify(variables, null, 2) }) };
}
