import graphql from '@graphql-eslint/eslint-plugin';

const { rules } = graphql.configs['flat/schema-recommended'];
const { rules: relay } = graphql.configs['flat/schema-relay'];
const [, { EnumValueDefinition: _case, ...names }] = rules['@graphql-eslint/naming-convention'];

export default [
  {
    files: ['**/*.graphql'],
    plugins: { '@graphql-eslint': graphql },
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: '../../schema.graphql' } } },
    rules: {
      ...rules,
      ...relay,
      // `nodes` and short lists are not edges, and a member is a user with a role, without an id.
      '@graphql-eslint/relay-edge-types': [
        'error',
        { withEdgeSuffix: true, shouldImplementNode: false, listTypeCanWrapOnlyEdgeType: false },
      ],
      // Enum values are the values of the wire.
      '@graphql-eslint/naming-convention': ['error', names],
      // Not every type is an entity.
      '@graphql-eslint/strict-id-in-types': 'off',
    },
  },
];
