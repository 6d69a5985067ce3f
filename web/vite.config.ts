import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const server = process.env.PORTICO_URL ?? `http://localhost:${process.env.PORT ?? 4000}`;
/** What the server answers itself: in `npm run dev` Vite passes it on. */
const doors = ['/graphql', '/v1', '/desk/', '/docs', '/guides', '/health', '/.well-known'];

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), precompress()],
  build: {
    outDir: process.env.DESK_DIR ?? 'dist',
    emptyOutDir: true,
    // Only what is named by its content lies here: it may be kept for ever.
    assetsDir: 'assets',
    // A `data:` URL would be one more thing that the content policy has to allow.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    // The first with `light-dark()`.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Judged as it is sent: test/web/load.test.ts.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // The client package loads graphql-js when it has to print a document; here the cache has it already.
      checks: { ineffectiveDynamicImport: false },
      // What changes seldom is a file of its own, which stays in the browser when a page of ours changes.
      output: { codeSplitting: { groups: [{ name: 'packages', test: /node_modules/, tags: ['$initial'] }] } },
    },
  },
  server: {
    port: 5173,
    // As the server has it: without it a link to GraphiQL would not hand on the session.
    headers: { 'cross-origin-opener-policy': 'same-origin' },
    // As the server sees it, the page is its own.
    proxy: Object.fromEntries(doors.map((path) => [path, { target: server, changeOrigin: true, ws: true, headers: { origin: server } }])),
  },
});

/** Puts a `.br` beside each asset: what is served a thousand times is compressed once, and well. */
function precompress(): Plugin {
  const compress = promisify(brotliCompress);
  return {
    name: 'precompress',
    apply: 'build',
    async writeBundle({ dir = '' }, bundle) {
      const names = Object.keys(bundle).filter((name) => /^assets\/.*\.(js|css|svg)$/.test(name));
      await Promise.all(names.map(async (name) => writeFile(join(dir, `${name}.br`), await compress(await readFile(join(dir, name))))));
    },
  };
}
