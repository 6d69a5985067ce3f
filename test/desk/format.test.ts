import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

/** The formats of the desk in the browser of somebody whose numbers are those of a locale. */
async function importFormats(locale: string): Promise<typeof import('../../web/src/parts/format.ts')> {
  const { NumberFormat } = Intl;
  const value = class extends NumberFormat {
    constructor(_: unknown, options?: Intl.NumberFormatOptions) {
      super(locale, options);
    }
  };
  vi.stubGlobal('Intl', Object.create(Intl, { NumberFormat: { value } }));
  vi.resetModules();
  return import('../../web/src/parts/format.ts');
}

it.each([
  ['en', ['0 B', '1,023 B', '1.0 KiB', '1.5 GiB', '512 MiB', '2,048 TiB']],
  ['de', ['0 B', '1.023 B', '1,0 KiB', '1,5 GiB', '512 MiB', '2.048 TiB']],
])('the desk has one format for all numbers of a size: %s', async (locale, expected) => {
  const { formatBytes } = await importFormats(locale);
  expect([0, 1023, 1024, 1.5 * 2 ** 30, 2 ** 29, 2 ** 51].map(formatBytes)).toEqual(expected);
});
