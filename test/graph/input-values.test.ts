import { type FragmentDefinitionNode, Kind, type OperationDefinitionNode, parse } from 'graphql';
import { expect, it } from 'vitest';
import { createUseReader } from '../../src/graph/bindings.ts';
import { schema } from '../../src/schema.ts';

const fragments = `
  fragment F on Query { project(id: $p) { id ...G } ...F }
  fragment G on Project { instances(first: $n) { totalCount } dashboards(first: $n, orderBy: { field: name, direction: $d }) { totalCount } }`;

it('the input values that take the variables of each operation are found, in its fields and its fragments', () => {
  const document = parse(`
    query A($p: ID!, $n: Int, $d: SortDirection) { ...F }
    query B($p: ID!) { project(id: $p) { id } }
    query C($n: Int) { project(id: "x") { tasks(first: $n) { totalCount } ...G } }
    query D($x: Int) { ...Unknown viewer(x: $x) { id } } ${fragments}`);
  const readUses = createUseReader(schema, document);
  const operations = document.definitions.filter((one): one is OperationDefinitionNode => one.kind === Kind.OPERATION_DEFINITION);
  const read = operations.map((operation) =>
    Object.fromEntries([...readUses(operation).inputValues].map(([name, taking]) => [name, taking.map((one) => one.name)])),
  );
  expect(read).toEqual([
    { p: ['id'], n: ['first', 'first'], d: ['direction'] },
    { p: ['id'] },
    { n: ['first', 'first', 'first'], d: ['direction'] },
    {},
  ]);
});

it('a fragment is walked once, however many operations use it', () => {
  const operations = Array.from({ length: 70 }, (_, index) => `query Q${index}($n: Int = 1) { ...F }`).join(' ');
  const document = parse(`${operations} ${fragments}`);
  const fragment = document.definitions.find((one): one is FragmentDefinitionNode => one.kind === Kind.FRAGMENT_DEFINITION);
  const { selectionSet } = fragment ?? {};
  let walks = 0;
  const get = () => {
    walks += 1;
    return selectionSet;
  };
  Object.defineProperty(fragment, 'selectionSet', { get, enumerable: true });
  const readUses = createUseReader(schema, document);
  for (const one of document.definitions)
    if (one.kind === Kind.OPERATION_DEFINITION) expect(readUses(one).inputValues.get('n')).toHaveLength(2);
  expect(walks).toBe(1);
});
