import { readFile } from 'node:fs/promises';
import { icon, pageStyle } from './pagestyle.ts';

interface Guide {
  readonly title: string;
  readonly file: URL;
}

/** The guides by the names of their pages. Each URL is a literal, so that the bundler copies the file into the build. */
export const guides: Readonly<Record<string, Guide>> = {
  start: { title: 'Getting started', file: new URL('../../../docs/start.md', import.meta.url) },
  authentication: { title: 'Authentication', file: new URL('../../../docs/authentication.md', import.meta.url) },
  errors: { title: 'Errors', file: new URL('../../../docs/errors.md', import.meta.url) },
  limits: { title: 'Limits', file: new URL('../../../docs/limits.md', import.meta.url) },
  pagination: { title: 'Pagination', file: new URL('../../../docs/pagination.md', import.meta.url) },
  concurrency: { title: 'Concurrency', file: new URL('../../../docs/concurrency.md', import.meta.url) },
  v1: { title: 'The v1 API', file: new URL('../../../docs/v1.md', import.meta.url) },
  choices: { title: 'Choices where v1 leaves room', file: new URL('../../../docs/choices.md', import.meta.url) },
  graphql: { title: 'The GraphQL API', file: new URL('../../../docs/graphql.md', import.meta.url) },
  feed: { title: 'The notification feed', file: new URL('../../../docs/feed.md', import.meta.url) },
  consoles: { title: 'Consoles', file: new URL('../../../docs/consoles.md', import.meta.url) },
  desk: { title: 'The desk', file: new URL('../../../docs/desk.md', import.meta.url) },
  cli: { title: 'The command line', file: new URL('../../../docs/cli.md', import.meta.url) },
  operations: { title: 'Operations', file: new URL('../../../docs/operations.md', import.meta.url) },
  data: { title: 'What the database guarantees', file: new URL('../../../docs/data.md', import.meta.url) },
  performance: { title: 'What it costs, and how that is measured', file: new URL('../../../docs/performance.md', import.meta.url) },
  scale: { title: 'How far it scales', file: new URL('../../../docs/scale.md', import.meta.url) },
};

const style = `${pageStyle}
  body { max-width: 52rem; margin: 2rem auto }
  h2, h3 { line-height: 1.25; margin: 2rem 0 .5rem }
  pre, .wide { overflow-x: auto }
  pre { background: var(--shade); padding: .75rem 1rem; border-radius: .3rem; font-size: .875rem }
  pre code { padding: 0; overflow-wrap: normal }
  table { border-collapse: collapse }
  th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top }
  nav { margin-bottom: 2rem }`;

const page = (title: string, nav: string, main: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Portico: ${title}</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
${nav}<main>
${main}</main>
</body>
</html>
`;

export function renderGuideList(): string {
  const items = Object.entries(guides).map(([name, { title }]) => `<li><a href="guides/${name}">${title}</a></li>\n`);
  return page('guides', '<nav aria-label="Portico"><a href="./">Portico</a></nav>\n', `<h1>Guides</h1>\n<ul>\n${items.join('')}</ul>\n`);
}

/** The same list as JSON; `/guides/<name>.md` is the text of each guide. */
export function renderGuideIndex(): string {
  return JSON.stringify(Object.entries(guides).map(([name, { title }]) => ({ name, title })));
}

/** Renders a guide's Markdown as a page. */
export async function renderGuide({ title, file }: Guide): Promise<string> {
  const [{ Marked }, text] = await Promise.all([import('marked'), readFile(file, 'utf8')]);
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      // A link to a file that is not served is rendered as its text.
      link({ href, tokens }) {
        const content = this.parser.parseInline(tokens);
        const target = targetOf(href);
        return target === null ? content : `<a href="${escapeHtml(target)}">${content}</a>`;
      },
      // `tabindex` lets the keyboard scroll code that is wider than the screen.
      code({ text, lang }) {
        return `<pre tabindex="0" aria-label="${escapeHtml(lang || 'text')}"><code>${escapeHtml(text)}\n</code></pre>\n`;
      },
      // The guides contain no HTML: what looks like it is text.
      html: ({ text }) => escapeHtml(text),
    },
  });
  const main = (await marked.parse(text)).replace(/<table>([\s\S]*?)<\/table>/g, '<div class="wide" tabindex="0"><table>$1</table></div>');
  return page(title, '<nav aria-label="Portico"><a href="../">Portico</a> · <a href="../guides">Guides</a></nav>\n', main);
}

/** A heading's anchor, as GitHub makes it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

/** The target of a guide's link: another guide's page, a section, another site; null for a file that is not served. */
function targetOf(href: string): string | null {
  if (/^(https:|#)/.test(href)) return href;
  const [, name = '', anchor = ''] = /^(\w+)\.md(#.*)?$/.exec(href) ?? [];
  return Object.hasOwn(guides, name) ? name + anchor : null;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
