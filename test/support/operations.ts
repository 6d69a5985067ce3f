import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  getNullableType,
  getOperationAST,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isUnionType,
  parse,
  visit,
} from 'graphql';
import { readBindings } from '../../src/graph/bindings.ts';
import { schema } from '../../src/schema.ts';
import { routes } from '../../src/transport/rest/routes.ts';

/** A variable of an operation. */
export interface Variable {
  readonly name: string;
  readonly type: GraphQLInputType;
  readonly isRequired: boolean;
  /** The model that an id names: `dashboard` for `$dashboard_id`, `notification` for `$notification_ids`; null for other variables. */
  readonly model: string | null;
}

/** An operation of either API, as one document with a variable for every input value. */
export interface Operation {
  readonly name: string;
  readonly document: string;
  readonly variables: readonly Variable[];
  readonly isMutation: boolean;
  /** The owner of the data: the project or organization that a variable names, or the caller. */
  readonly scope: 'project' | 'organization' | 'viewer';
  /** The schema's descriptions of its fields, joined. */
  readonly descriptions: string;
  /** The v1 route; null for a GraphQL document. */
  readonly route: { readonly method: string; readonly path: string; readonly status: number } | null;
}

type Field = GraphQLField<unknown, unknown>;

/** The operations of the v1 routes, in the order of the table. */
export function routeOperations(): Operation[] {
  return routes.map(({ method, path, status, operation }) => ({
    ...readDocument(operation, `${method.toUpperCase()} ${path}`),
    route: { method: method.toUpperCase(), path, status },
  }));
}

/**
 * One operation for every root field of the schema; if a query field returns an object, one for each field of that object.
 * `node` and `nodes` are left out: their ids name objects of every type, which test/graph/nodes.test.ts covers.
 */
export function graphqlOperations(): Operation[] {
  const roots = Object.values(schema.getQueryType()?.getFields() ?? {}).filter(({ name }) => !/^nodes?$/.test(name));
  const queries = roots.flatMap((root) => {
    const type = getNamedType(root.type);
    if (!isObjectType(type)) return [writeDocument('query', [root])];
    const fields = Object.values(type.getFields());
    return fields.map((field) => writeDocument('query', [root, field]));
  });
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {}).map((root) => writeDocument('mutation', [root]));
  return [...queries, ...mutations].map(({ name, text }) => ({ ...readDocument(text, name), route: null }));
}

/** Writes `query { root(…) { field(…) { everything } } }`, with a variable for every argument and every input field. */
function writeDocument(kind: 'query' | 'mutation', path: readonly Field[]) {
  const declared: string[] = [];
  const declare = (owner: string, name: string, type: GraphQLInputType, defaultText: string) => {
    const variable = variableName(owner, name);
    declared.push(`$${variable}: ${type}${defaultText}`);
    return `$${variable}`;
  };
  const opened = path.map((field) => {
    const owner = modelOf(field, kind);
    const given = field.args.map((argument) => `${argument.name}: ${writeValue(owner, argument, declare)}`);
    return given.length > 0 ? `${field.name}(${given.join(', ')})` : field.name;
  });
  const last = path.at(-1) as Field;
  const body = `${opened.join(' { ')} ${selectAll(last.type)}${' }'.repeat(path.length - 1)}`;
  const head = declared.length > 0 ? `(${declared.join(', ')})` : '';
  return { name: `${kind} ${path.map(({ name }) => name).join('.')}`, text: `${kind} matrix${head} { ${body} }` };
}

function writeValue(
  owner: string,
  { name, type, defaultValue }: GraphQLArgument | GraphQLInputField,
  declare: (owner: string, name: string, type: GraphQLInputType, defaultText: string) => string,
): string {
  const inner = getNullableType(type);
  // An optional input object with required fields must be omitted as a whole, so it is a single variable.
  const isWhole = isInputObjectType(inner) && inner === type && Object.values(inner.getFields()).some(isRequiredInputField);
  if (!isInputObjectType(inner) || isWhole)
    return declare(owner, name, type, defaultValue === undefined ? '' : ` = ${JSON.stringify(defaultValue)}`);
  const fields = Object.values(inner.getFields()).map((field) => `${field.name}: ${writeValue(owner, field, declare)}`);
  return `{ ${fields.join(', ')} }`;
}

/**
 * Selects all fields of a type that need no arguments, and of linked objects their own fields. Paged lists select two items,
 * because all would exceed the cost limit. The items of a connection are selected once, through `nodes`.
 */
export function selectAll(outputType: GraphQLOutputType, isLinked = false): string {
  const type = getNamedType(outputType);
  if (!isCompositeType(type)) return '';
  if (isUnionType(type)) return '{ __typename }';
  const isThing = 'id' in type.getFields();
  const fields = Object.values(type.getFields()).filter((field) => !field.args.some(isRequiredArgument));
  const parts = fields.flatMap((field) => {
    if (!isCompositeType(getNamedType(field.type))) return [field.name];
    if (field.name === 'edges') return ['edges { cursor node { __typename } }'];
    if (isThing && isLinked) return [];
    const size = field.args.find(({ name }) => name === 'first' || name === 'pageSize');
    const few = size ? `(${size.name}: 2)` : '';
    // A list without a page size, such as the rows that a mutation changed: the links of its items are not followed.
    const isWhole = isListType(getNullableType(field.type)) && !['nodes', 'results'].includes(field.name);
    return [`${field.name}${few} ${selectAll(field.type, isLinked || isThing || isWhole)}`];
  });
  const kinds = isInterfaceType(type) ? selectKinds(schema.getPossibleTypes(type), new Set(Object.keys(type.getFields()))) : [];
  return `{ __typename ${[...parts, ...kinds].join(' ')} }`;
}

/** Selects the own leaf fields of an interface's types; a field whose type differs between them gets an alias. */
function selectKinds(kinds: readonly GraphQLObjectType[], shared: ReadonlySet<string>): string[] {
  const types = new Map<string, string>();
  return kinds.map((kind) => {
    const leaves = Object.values(kind.getFields()).filter(
      ({ name, type, args }) => !shared.has(name) && isLeafType(getNamedType(type)) && !args.some(isRequiredArgument),
    );
    const parts = leaves.map(({ name, type }) => {
      const known = types.get(name) ?? String(type);
      types.set(name, known);
      return known === String(type) ? name : `${kind.name}_${name}: ${name}`;
    });
    return parts.length > 0 ? `... on ${kind.name} { ${parts.join(' ')} }` : '';
  });
}

/** The model that a field's `id` names: `Dashboard` for both `Project.dashboard` and `updateDashboard`. */
function modelOf(field: Field, kind: 'query' | 'mutation'): string {
  return kind === 'mutation' ? field.name.replace(/^[a-z]+/, '') : getNamedType(field.type).name;
}

/** The v1 spelling of a variable's name: `id` of a dashboard becomes `dashboard_id`. */
function variableName(owner: string, name: string): string {
  return snake(name === 'id' ? `${owner}Id` : name);
}

function snake(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}

function readDocument(text: string, name: string): Omit<Operation, 'route'> {
  const document = parse(text);
  const operation = getOperationAST(document);
  if (!operation) throw new Error(`${name} has no operation`);
  const variables = [...readBindings(schema, document, operation)].map(([variable, { type, isRequired, inputValue }]) => {
    const mayBeAbsent = inputValue && ('defaultValue' in inputValue ? inputValue.defaultValue !== undefined : false);
    const isId = ['ID', 'UUID'].includes(getNamedType(type).name);
    const model = isId ? variable.replace(/_ids?$/, '') : null;
    return { name: variable, type, isRequired: isRequired && !mayBeAbsent, model };
  });
  const names = new Set(variables.map((variable) => variable.name));
  const isMutation = operation.operation === 'mutation';
  return {
    name,
    document: text,
    variables,
    isMutation,
    scope: names.has('project_id') ? 'project' : names.has('organization_id') ? 'organization' : 'viewer',
    descriptions: describe(document, isMutation),
  };
}

/** The descriptions of the fields on the path to the data. */
function describe(document: ReturnType<typeof parse>, isMutation: boolean): string {
  const found: string[] = [];
  let type = isMutation ? schema.getMutationType() : schema.getQueryType();
  visit(document, {
    Field(node) {
      const field = type?.getFields()[node.name.value];
      found.push(field?.description ?? '');
      const next = field && getNamedType(field.type);
      type = isObjectType(next) ? next : null;
      return found.length === 2 || isMutation ? false : undefined;
    },
  });
  return found.join(' ');
}

/** The sets of variable values that an operation is run with; most differ from `base` in one value, so that every enum value occurs. */
export function variantsOf({ variables, isMutation }: Operation): Array<{ label: string; values: Record<string, unknown> }> {
  const plain = (chosen: readonly Variable[]) =>
    Object.fromEntries(chosen.flatMap(({ name, type }) => [[name, valuesOf(type)[0]]]).filter(([, value]) => value !== undefined));
  const free = variables.filter(({ model }) => model === null);
  const base = plain(free.filter(({ isRequired }) => isRequired));
  const single = free.flatMap(({ name, type }) =>
    valuesOf(type)
      .filter((value) => value !== undefined && value !== base[name])
      .map((value) => ({ label: `${name}: ${JSON.stringify(value)}`, values: { ...base, [name]: value } })),
  );
  const full = isMutation ? [{ label: 'all', values: plain(free) }] : [];
  return [{ label: 'base', values: base }, ...full, ...single];
}

const scalarValues: Readonly<Record<string, readonly unknown[]>> = {
  Boolean: [true, false],
  // A key is valid for one request only; the tests of such keys make their own.
  IdempotencyKey: [],
  DateTime: ['2099-01-01T00:00:00.000Z'],
  Int: [1],
  JSON: [[{ matrix: 1 }]],
  JSONObject: [{ matrix: 1 }],
  Name: ['matrix'],
  Text: ['matrix'],
  // Strings are cursors, which only the server can create.
  String: [],
};

/**
 * Valid values of a type: all values of an enum, one of most scalars, and for an input object variants that differ from the
 * required fields in one field each. Throws for an unknown scalar.
 */
function valuesOf(type: GraphQLInputType): readonly unknown[] {
  const inner = getNullableType(type);
  if (isListType(inner)) {
    const items = valuesOf(inner.ofType);
    return isEnumType(getNullableType(inner.ofType)) ? [items.slice(0, 1), items] : [items.slice(0, 1)];
  }
  if (isEnumType(inner)) return inner.getValues().map(({ value }) => value);
  if (isInputObjectType(inner)) {
    const fields = Object.values(inner.getFields());
    const base = Object.fromEntries(fields.filter(isRequiredInputField).map((field) => [field.name, valuesOf(field.type)[0]]));
    const others = fields.flatMap((field) => valuesOf(field.type).map((value) => ({ ...base, [field.name]: value })));
    return [base, ...others.filter((value) => JSON.stringify(value) !== JSON.stringify(base))];
  }
  const values = scalarValues[inner.name];
  if (!values) throw new Error(`no value is known for the type ${inner.name}`);
  return values;
}

/** The names of the variables in a route's path. */
export function pathVariables(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

export function isList(variable: Variable): boolean {
  return isListType(getNullableType(variable.type));
}

/** Whether the id locates an object (malformed: `not_found`) rather than being data (malformed: a field error). */
export function isLocator(variable: Variable): boolean {
  return getNamedType(variable.type).name === 'ID';
}
