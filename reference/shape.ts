import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLScalarType,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { FieldConstraints } from '../src/graph/constraints.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

const twoShapes = 'the routes select different fields of it; select the same ones, or give the new route a type of its own';

/** The named schemas of a document: one name has one shape. */
export class NamedSchemas {
  readonly all: Record<string, JsonSchema> = {};
  readonly #names: Readonly<Record<string, string>>;

  /** `names`: GraphQL name → name in the document, where they differ. */
  constructor(names: Readonly<Record<string, string>> = {}) {
    this.#names = names;
  }

  /** Throws if the name already has another shape: the routes must agree on one, or use another type. */
  refer(name: string, schema: JsonSchema): JsonSchema {
    const known = this.nameOf(name);
    const other = this.all[known];
    if (other && JSON.stringify(other) !== JSON.stringify(schema)) throw new Error(`${known}: ${twoShapes}`);
    this.all[known] = schema;
    return { $ref: `#/components/schemas/${known}` };
  }

  nameOf(name: string): string {
    return this.#names[name] ?? name;
  }

  enum(type: GraphQLNamedType & { getValues(): ReadonlyArray<{ name: string }> }): JsonSchema {
    return this.refer(type.name, { type: 'string', ...describe(type), enum: type.getValues().map(({ name }) => name) });
  }
}

/** The data of an operation with schemas in place of values: what `response` picks from it describes the response. */
export interface Shape {
  readonly [responseName: string]: Shape;
}

interface ObjectPart {
  readonly type: GraphQLObjectType;
  readonly definitions: Readonly<Record<string, GraphQLField<unknown, unknown>>>;
}

const objects = new WeakMap<Shape, ObjectPart>();

/** The shape of a selection; every field of the type must be selected by name, not in a fragment. */
export function shapeOf(type: GraphQLObjectType, { selections }: SelectionSetNode): Shape {
  const shape: Record<string, Shape> = {};
  const definitions: Record<string, GraphQLField<unknown, unknown>> = {};
  for (const node of selections) {
    if (node.kind !== Kind.FIELD) throw new Error(`${type.name}: a route selects fields by name`);
    const definition = type.getFields()[node.name.value];
    if (!definition) throw new Error(`${type.name} has no field ${node.name.value}`);
    const name = node.alias?.value ?? node.name.value;
    const item = itemType(definition.type);
    definitions[name] = definition;
    shape[name] = isObjectType(item) && node.selectionSet ? shapeOf(item, node.selectionSet) : {};
  }
  objects.set(shape, { type, definitions });
  return shape;
}

/** The object that the shape stands for; undefined for a leaf. */
export function objectOf(shape: Shape): ObjectPart | undefined {
  return objects.get(shape);
}

interface Additions {
  readonly omit?: string;
  readonly add?: Readonly<Record<string, JsonSchema>>;
}

/** The schema of an object on the wire: every selected field is required. */
export function objectSchema(schemas: NamedSchemas, shape: Shape, { omit, add = {} }: Additions = {}): JsonSchema {
  const object = objects.get(shape);
  if (!object) throw new Error('a route answers an object, or a list of them');
  const fields = Object.entries(object.definitions).filter(([name]) => name !== omit);
  const properties = {
    ...Object.fromEntries(fields.map(([name, definition]) => [name, fieldSchema(schemas, definition, shape[name] ?? {})])),
    ...add,
  };
  return { type: 'object', ...describe(object.type), required: Object.keys(properties).sort(), properties };
}

function fieldSchema(schemas: NamedSchemas, definition: GraphQLField<unknown, unknown>, shape: Shape): JsonSchema {
  const { values } = definition.extensions as { values?: readonly string[] };
  return {
    ...outputSchema(schemas, definition.type, shape),
    ...describe(definition),
    ...(values?.length === 1 ? { const: values[0] } : values && { enum: values }),
  };
}

function outputSchema(schemas: NamedSchemas, type: GraphQLOutputType, shape: Shape): JsonSchema {
  const bare = getNullableType(type);
  const schema = bareOutput(schemas, bare, shape);
  return isNonNullType(type) ? schema : orNull(schema);
}

function bareOutput(schemas: NamedSchemas, bare: GraphQLOutputType, shape: Shape): JsonSchema {
  if (isListType(bare)) return { type: 'array', items: outputSchema(schemas, bare.ofType, shape) };
  if (isScalarType(bare)) return scalarSchema(bare);
  if (isEnumType(bare)) return schemas.enum(bare);
  if (isObjectType(bare)) return schemas.refer(bare.name, objectSchema(schemas, shape));
  throw new Error(`${String(bare)} has no place in a route`);
}

/** The schema of a variable; nullable only if its declaration is, and never in a query string. */
export function inputSchema(
  schemas: NamedSchemas,
  type: GraphQLInputType,
  position: GraphQLInputField | GraphQLArgument | null,
  isInBody: boolean,
): JsonSchema {
  const { maxItems, maxLength, minimum, rejectsNull } = (position?.extensions ?? {}) as FieldConstraints;
  const bare = getNullableType(type);
  const schema = {
    // A number in a query string is unbounded (see `queryVariables`).
    ...(isInBody || bare !== GraphQLInt ? bareInput(schemas, bare) : { type: 'integer' }),
    ...(maxItems !== undefined && { maxItems }),
    ...(maxLength !== undefined && { maxLength }),
    ...(minimum !== undefined && { minimum }),
  };
  const isNullable = isInBody && !isNonNullType(type) && !rejectsNull;
  const { defaultValue } = position ?? {};
  return {
    ...(isNullable ? orNull(schema) : schema),
    ...(position && describe(position)),
    ...(defaultValue !== undefined && { default: defaultValue }),
  };
}

function bareInput(schemas: NamedSchemas, type: GraphQLInputType): JsonSchema {
  if (isListType(type)) return { type: 'array', items: bareInput(schemas, getNullableType(type.ofType)) };
  if (isScalarType(type)) return scalarSchema(type);
  if (isEnumType(type)) return schemas.enum(type);
  throw new Error(`${String(type)} has no place in a request of v1`);
}

const builtIns: Readonly<Record<string, JsonSchema>> = {
  // All ids are UUIDs.
  ID: { type: 'string', format: 'uuid' },
  String: { type: 'string' },
  Boolean: { type: 'boolean' },
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number', format: 'double' },
};

function scalarSchema(type: GraphQLScalarType): JsonSchema {
  const { jsonSchema } = type.extensions as { jsonSchema?: JsonSchema };
  const schema = jsonSchema ?? builtIns[type.name];
  if (!schema) throw new Error(`the scalar ${type.name} declares no JSON schema`);
  return schema;
}

function orNull(schema: JsonSchema): JsonSchema {
  // A schema without constraints already allows null.
  if (Object.keys(schema).length === 0) return schema;
  return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : { anyOf: [schema, { type: 'null' }] };
}

interface Described {
  readonly description?: string | null;
  readonly deprecationReason?: string | null;
  /** May have a `v1Description`: that of an element whose description names what v1 does not have. */
  readonly extensions: { readonly v1Description?: string };
}

function describe({ description, deprecationReason, extensions: { v1Description } }: Described): JsonSchema {
  const text = [v1Description ?? description, deprecationReason].filter(Boolean).join(' ');
  return { ...(text && { description: text }), ...(deprecationReason && { deprecated: true }) };
}

function itemType(type: GraphQLOutputType): GraphQLOutputType {
  const bare = getNullableType(type);
  return isListType(bare) ? itemType(bare.ofType) : bare;
}
