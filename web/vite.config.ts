import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const server = process.env.PORTICO_URL ?? `http://localhost:${process.env.PORT ?? 4000}`;
/** Paths that the server answers itself: in `npm run dev` Vite proxies them. */
const proxiedPaths = ['/graphql', '/v1', '/desk/', '/docs', '/guides', '/health', '/.well-known'];

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), precompress()],
  build: {
    outDir: process.env.DESK_DIR ?? 'dist',
    emptyOutDir: true,
    // Every file here has a content hash in its name, so it may be cached for ever.
    assetsDir: 'assets',
    // Inlined assets would require `data:` URLs in the Content Security Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    // The first versions with `light-dark()`.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // test/web/load.test.ts checks the size as sent.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      // The client package imports graphql-js dynamically; here the Apollo cache imports it statically already. On a slow machine
      // the timings would be printed at each build.
      checks: { ineffectiveDynamicImport: false, bundlerTimings: false },
      // Packages change seldom: their own chunk stays in the browser's cache when a page changes.
      output: { codeSplitting: { groups: [{ name: 'packages', test: /node_modules/, tags: ['$initial'] }] } },
    },
  },
  server: {
    port: 5173,
    // The server sends the same header: without it a tab with GraphiQL would not inherit the session.
    headers: { 'cross-origin-opener-policy': 'same-origin' },
    // The Origin header is that of the server, so that it treats the page as its own.
    proxy: Object.fromEntries(
      proxiedPaths.map((path) => [path, { target: server, changeOrigin: true, ws: true, headers: { origin: server } }]),
    ),
  },
});

/** Writes a `.br` file beside each asset: compressed once at the best level, not for each response. */
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
