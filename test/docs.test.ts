import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../src/platform/packageroot.ts';
import { listRights } from '../src/platform/rights.ts';

const checkout = fileURLToPath(packageRoot);
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'clients/typescript/README.md',
  ...readdirSync(join(checkout, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
];
const read = (path: string) => readFileSync(join(checkout, path), 'utf8');

/** The anchors that GitHub generates for the headings of a page. */
const anchorsOf = (page: string) =>
  [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );

describe('the documentation', () => {
  it.each(pages)('the links of %s lead to existing files and headings', (path) => {
    const links = [...read(path).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link).filter((link) => !/^https?:/.test(link));
    const broken = links.filter((link) => {
      const [file = '', anchor] = link.split('#', 2);
      const page = read(file === '' ? path : normalize(join(dirname(path), file)));
      return anchor !== undefined && !anchorsOf(page).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  it('is reached from the README', () => {
    const readme = read('README.md');
    for (const page of pages.slice(1)) expect(readme).toContain(`](${page})`);
  });

  it('names the settings with which `npm start` and the image start the server, which are the same', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const settingsOf = (text: string) => [...new Set(text.match(/--(?!disable-warning)[\w-]+=\d+|MALLOC\w+=\d+/g))].sort();
    const settings = settingsOf(scripts.start ?? '');
    expect(settings.length).toBeGreaterThan(1);
    expect(settingsOf(read('Dockerfile').replaceAll('", "', ' '))).toEqual(expect.arrayContaining(settings));
    const [, explained = ''] = /three settings for its memory([\s\S]*?)\n\n[^-]/.exec(read('docs/operations.md')) ?? [];
    expect(settingsOf(explained)).toEqual(settings);
  });

  it('grants the gateway the rights without which it does not start, and no others', () => {
    const operations = read('docs/operations.md');
    const granted = [...operations.matchAll(/GRANT ([^;]*?) ON ([^;]*?) TO portico_gateway;/g)].flatMap(([, rights = '', names = '']) =>
      names.split(', ').flatMap((table) =>
        rights.split(/, (?![^(]*\))/).flatMap((right) => {
          const [, verb, columns = ''] = /^(\w+)(?: \((.*)\))?$/.exec(right) ?? [];
          return columns.split(', ').map((column) => `${verb} (${column}) ON ${table}`);
        }),
      ),
    );
    const needed = listRights({ deletesConsoleRecords: true }).map(({ table, right, column }) =>
      right === 'SELECT' ? 'SELECT () ON ALL TABLES IN SCHEMA public' : `${right} (${column ?? ''}) ON ${table}`,
    );
    expect(granted.sort()).toEqual([...new Set(needed)].sort());
  });

  it('has no paragraph twice', () => {
    const paragraphs = pages.flatMap((path) =>
      read(path)
        .replace(/```[\s\S]*?```/g, '')
        .split(/\n\s*\n/)
        .map((text) => text.replace(/\s+/g, ' ').trim())
        .filter((text) => text.length > 80),
    );
    expect(paragraphs.filter((text, index) => paragraphs.indexOf(text) !== index)).toEqual([]);
  });
});
