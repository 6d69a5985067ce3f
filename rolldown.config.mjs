import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { defineConfig } from 'rolldown';

// Every program of Portico: each becomes a file of its name in the build.
const input = {
  main: 'src/main.ts',
  cli: 'src/cli.ts',
  print: 'reference/print.ts',
};

// The build is all that a program needs besides Node.js: packages are bundled, and the files that are named by
// `new URL('…', import.meta.url)` lie beside them. `npm ci` takes nothing away from a server that runs.
export default defineConfig({
  input,
  platform: 'node',
  // What throws is an effect too: the shaking drops a call like `decodeURIComponent(text)` whose value nobody uses.
  treeshake: false,
  tsconfig: 'tsconfig.json',
  // Packages look for mistakes of developers unless they are told so: graphql-js at every type that it compares.
  transform: { define: { 'process.env.NODE_ENV': '"production"', 'globalThis.process.env.NODE_ENV': '"production"' } },
  logLevel: 'warn',
  // PGlite's, of Emscripten.
  checks: { eval: false },
  plugins: [{ name: 'assets', transform: { filter: { code: 'import.meta.url' }, handler: emitAssets } }],
  output: {
    dir: 'dist/draft',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Its default removes calls whose value nobody uses, too.
    minify: false,
    // V8 keeps the text of a program for as long as it runs: in one byte a character where all are ASCII, or else in two.
    charset: 'ascii',
    sourcemap: true,
    sourcemapExcludeSources: true,
    comments: { jsdoc: false, annotation: false, legal: false },
    codeSplitting: {
      groups: [
        { name: 'packages', test: /node_modules/, tags: ['$initial'] },
        { name: 'shared', minShareCount: 2, tags: ['$initial'] },
      ],
    },
  },
});

/**
 * Copies the files that a module names into the build. Rolldown's own `resolveNewUrlToAsset` needs the shaking.
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
