import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packageRoot } from '../../src/platform/packageroot.ts';

const read = (path: string) => readFileSync(new URL(`web/src/${path}`, packageRoot), 'utf8');
const listStyles = (folder: string) =>
  readdirSync(new URL(`web/src/${folder}/`, packageRoot), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.css'))
    .map((path) => `${folder}/${path}`);
/** The class names in the selectors of a stylesheet. */
const readClasses = (path: string) => {
  const selectors = read(path)
    .replace(/\/\*.*?\*\//gs, '')
    .match(/[^{};]+(?=\{)/g);
  return new Set((selectors ?? []).filter((text) => !text.includes('@')).flatMap((text) => text.match(/(?<=\.)[a-z][\w-]*/g) ?? []));
};

it('no two pages style the same class, as a stylesheet stays when its page has been left', () => {
  const shared = new Set(listStyles('style').flatMap((path) => [...readClasses(path)]));
  const pages = listStyles('pages');
  const own = pages.flatMap((path) => [...readClasses(path)].filter((name) => !shared.has(name) && !name.startsWith('cm-')));
  expect(own.length).toBeGreaterThan(60);
  expect(own.filter((name, index) => own.indexOf(name) < index)).toEqual([]);
});

/** The relative luminance of a colour, as WCAG defines it. */
function measure(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

it.each(['light', 'dark'] as const)('each colour of text can be read on each background, in %s colours', (theme) => {
  const pairs = read('style/tokens.css').matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g);
  const colours = new Map([...pairs].map(([, name, light, dark]) => [name, measure((theme === 'light' ? light : dark) as string)]));
  const contrast = (text: string, ground: string) => {
    const [high = 0, low = 0] = [text, ground].map((name) => colours.get(name) ?? Number.NaN).sort((one, other) => other - one);
    return (high + 0.05) / (low + 0.05);
  };
  const texts = ['ink', 'soft', 'accent', 'good', 'busy', 'info', 'idle', 'warning', 'critical'];
  const grounds = ['paper', 'raised', 'shade', 'accent-shade', 'warning-shade', 'critical-shade'];
  const weak = texts.flatMap((text) => grounds.map((ground) => [text, ground, contrast(text, ground)] as const));
  expect(weak.filter(([, , ratio]) => !(ratio >= 4.5))).toEqual([]);
});
