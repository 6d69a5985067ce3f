import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ RATE_LIMIT_PAGES: '1000' });
});
afterAll(() => app.close());

const names = readdirSync('docs').flatMap((file) => (file.endsWith('.md') ? [file.slice(0, -'.md'.length)] : []));
const read = (path: string) => app.ask('GET', path, { as: null, headers: { accept: 'text/html' } });
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found);
const hrefs = (html: string) => matches(html.slice(html.indexOf('<body>')), /href="([^"]*)"/g);

it('are all listed by their titles, and linked from the home page', async () => {
  const { text } = await read('/guides');
  expect(hrefs(text).sort()).toEqual(['./', ...names.map((name) => `guides/${name}`)].sort());
  for (const name of names) {
    const [, title] = /^# (.+)$/m.exec(readFileSync(`docs/${name}.md`, 'utf8')) ?? [];
    expect(text).toContain(`<a href="guides/${name}">${title}</a>`);
    expect((await read(`/guides/${name}`)).text).toMatch(
      new RegExp(`<title>Portico: ${title}</title>[\\s\\S]*<main>\\s*<h1[^>]*>${title}</h1>`),
    );
  }
  expect(hrefs((await read('/')).text)).toContain('/guides');
});

describe.each(names)('%s', (name) => {
  it('is a self-contained page', async () => {
    const { status, headers, text } = await read(`/guides/${name}`);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    expect(text).not.toMatch(/<script|<img|src=|@import|url\(/);
    expect(matches(text, /<(main|h1)\b/g).sort()).toEqual(['h1', 'main']);
    expect(matches(text, /<meta name="(\w+)"/g)).toEqual(['viewport']);
    const ids = matches(text, / id="([^"]*)"/g);
    expect(ids).toHaveLength(new Set(ids).size);
  });

  it('has all text of its file', async () => {
    const { text } = await read(`/guides/${name}`);
    const markdown = readFileSync(`docs/${name}.md`, 'utf8');
    const plain = text
      .replace(/<[^>]*>/g, '')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&amp;', '&');
    for (const block of matches(markdown, /^```\w*\n([\s\S]*?)^```$/gm)) expect(plain).toContain(block);
    const words = (whole: string) => whole.match(/\p{L}{4,}/gu) ?? [];
    const said = new Set(words(plain));
    expect(
      words(
        markdown
          .replace(/\]\([^)]*\)/g, ']')
          .replace(/^```\w+$/gm, '')
          .replaceAll('`', ''),
      ).filter((word) => !said.has(word)),
    ).toEqual([]);
  });

  it('links to existing pages and headings', async () => {
    const { text } = await read(`/guides/${name}`);
    for (const href of hrefs(text)) {
      const { origin, pathname, hash } = new URL(href, `${app.baseUrl}/guides/${name}`);
      if (origin !== app.baseUrl) continue;
      const target = await read(pathname);
      expect([href, target.status]).toEqual([href, 200]);
      if (hash) expect(target.text, href).toContain(` id="${hash.slice(1)}"`);
    }
  });
});

it('are served to programs as a list, and each as its Markdown', async () => {
  const list = await app.ask('GET', '/guides.json', { as: null });
  expect([list.status, list.headers['content-type'], list.headers['cache-control']]).toEqual([
    200,
    'application/json; charset=utf-8',
    'max-age=300',
  ]);
  expect(list.json.map(({ name }: { name: string }) => name).sort()).toEqual([...names].sort());
  for (const { name, title } of list.json) {
    const { status, headers, text } = await read(`/guides/${name}.md`);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, 'text/markdown; charset=utf-8', 'max-age=300']);
    expect(text).toBe(readFileSync(`docs/${name}.md`, 'utf8'));
    expect(text).toContain(`# ${title}\n`);
  }
});

it('are 404 for an absent guide', async () => {
  for (const path of [
    '/guides/',
    '/guides/nothing',
    '/guides/nothing.md',
    '/guides/start.md.md',
    '/guides/..%2fREADME',
    '/guides/constructor',
  ])
    expect((await read(path)).status, path).toBe(404);
});
