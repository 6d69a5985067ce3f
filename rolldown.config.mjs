import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { defineConfig } from 'rolldown';

// Portico's entry points: each becomes a file of its name in the build.
const input = {
  main: 'src/main.ts',
  cli: 'src/cli.ts',
  print: 'reference/print.ts',
};

const byEntry = { entriesAware: true, entriesAwareMergeThreshold: 50_000 };

// A build needs nothing but Node.js: packages are bundled, and files named by `new URL('…', import.meta.url)` are copied
// beside them. So `npm ci` removes no file that a running server needs.
export default defineConfig({
  input,
  platform: 'node',
  // Tree shaking ignores that a call may throw: it would drop `decodeURIComponent(text)` if its value is unused.
  treeshake: false,
  tsconfig: 'tsconfig.json',
  // Without this, packages run their development checks: graphql-js at every comparison of types.
  transform: { define: { 'process.env.NODE_ENV': '"production"', 'globalThis.process.env.NODE_ENV': '"production"' } },
  logLevel: 'warn',
  // PGlite's code from Emscripten uses `eval`. On a slow machine the timings would be printed at each build.
  checks: { eval: false, bundlerTimings: false },
  plugins: [{ name: 'assets', transform: { filter: { code: 'import.meta.url' }, handler: emitAssets } }],
  output: {
    dir: 'dist/draft',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // The default, `dce-only`, would also remove calls whose value is unused.
    minify: false,
    // V8 keeps the source in memory: one byte per character if all are ASCII, otherwise two.
    charset: 'ascii',
    // Packages obey DEBUG: Prisma's client would print DATABASE_URL, and fail on the embedded database.
    intro: 'delete process.env.DEBUG;',
    sourcemap: true,
    sourcemapExcludeSources: true,
    comments: { jsdoc: false, annotation: false, legal: false },
    // An entry point loads only what it needs: a command of an operator nothing of the server's transports.
    codeSplitting: {
      groups: [
        { name: 'packages', test: /node_modules/, tags: ['$initial'], ...byEntry },
        { name: 'shared', minShareCount: 2, tags: ['$initial'], ...byEntry },
      ],
    },
  },
});

/**
 * Copies the files that a module names into the build. Rolldown's own `resolveNewUrlToAsset` requires tree shaking.
 * @this {import('rolldown').TransformPluginContext} @param {string} code @param {string} id
 */
function emitAssets(code, id) {
  const emitted = code.replace(/new URL\((['"])(\.[^'"]+\.\w+)\1, ?import\.meta\.url\)/g, (whole, _quote, name) => {
    const path = join(dirname(id), name);
    if (!existsSync(path)) return whole;
    this.emitFile({ type: 'asset', fileName: basename(name), source: readFileSync(path) });
    return `new URL('./${basename(name)}', import.meta.url)`;
  });
  return { code: emitted, map: null };
}
