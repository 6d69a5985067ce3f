import * as safeql from '@ts-safeql/eslint-plugin';
import * as parser from '@typescript-eslint/parser';
import { collect } from './collect.mjs';

/** PostgreSQL type → TypeScript type, as src/platform/decode.ts decodes it. */
const types = {
  uuid: 'string',
  int2: 'number',
  int4: 'number',
  int8: 'number',
  numeric: 'string',
  timestamptz: 'Date',
  date: 'never',
  timestamp: 'never',
  json: 'unknown',
  jsonb: 'never',
  bytea: { parameter: { regex: 'Uint8Array(<.*>)?' }, return: 'Uint8Array' },
};

const noFragments = 'A statement that is put together of fragments cannot be compared with the schema: write it out, or use Prisma.';

/** The ESLint configuration that checks the sources below `root` against the database at `url`. */
export function configure(root, url) {
  return [
    {
      files: ['**/*.ts'],
      ignores: ['src/generated/**'],
      languageOptions: { parser, parserOptions: { projectService: true, tsconfigRootDir: root } },
      linterOptions: { noInlineConfig: true, reportUnusedDisableDirectives: 'off' },
      plugins: { safeql, portico: { rules: { collect } } },
      rules: {
        'safeql/check-sql': [
          'error',
          {
            connections: [
              {
                databaseUrl: url,
                targets: [
                  { tag: { regex: '(.*\\.)?query(Ascending)?' }, transform: '{type}' },
                  // `$executeRaw` returns the number of rows, not columns.
                  { tag: { regex: '(.*\\.)?\\$executeRaw' }, skipTypeAnnotations: true },
                ],
                overrides: { types },
              },
            ],
          },
        ],
        'portico/collect': 'error',
        'no-restricted-syntax': [
          'error',
          { selector: 'MemberExpression[object.name="Prisma"][property.name=/^(sql|join|raw|empty)$/]', message: noFragments },
          {
            selector: 'MemberExpression[property.name=/^\\$(queryRaw|queryRawUnsafe|executeRawUnsafe)$/]',
            message: 'Rows come by `query`, also within `transact`: it has the decoder, and what it is given is checked.',
          },
        ],
      },
    },
    { ignores: ['**/*', '!src', '!src/**', '!demo', '!demo/**'] },
  ];
}
