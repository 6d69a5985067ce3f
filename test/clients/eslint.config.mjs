import graphql from '@graphql-eslint/eslint-plugin';

const { rules } = graphql.configs['flat/schema-recommended'];
const [, { EnumValueDefinition: _case, ...names }] = rules['@graphql-eslint/naming-convention'];

export default [
  {
    files: ['**/*.graphql'],
    plugins: { '@graphql-eslint': graphql },
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: '../../schema.graphql' } } },
    rules: {
      ...rules,
      // Enum values are the values of the wire.
      '@graphql-eslint/naming-convention': ['error', names],
      // Not every type is an entity.
      '@graphql-eslint/strict-id-in-types': 'off',
    },
  },
];
