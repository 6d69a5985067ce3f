import {
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  GraphQLID,
  type GraphQLInputField,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  isRequiredInputField,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import type { ProjectIds } from '../access/scope.ts';
import type { Context } from './context.ts';

/** The ids by which a root field is told where: its `ID`s as far as they are given, those of its `input` too. */
type LocatingIds = Readonly<Record<string, string>>;

/**
 * Opens what the ids name, and throws `not_found` as the field itself would. A root field declares it in its
 * `extensions`, as `locate`; without that, `organizationId` and `projectId` are a project. Where the id of a project is
 * called otherwise, `projectArgument` is its name.
 */
export type Locate = (ids: LocatingIds, context: Context) => Promise<unknown>;

export interface Located {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** A root field that names what cannot be opened, and why. */
export interface Refused {
  readonly node: FieldNode;
  readonly failure: unknown;
}

/**
 * The root fields whose ids name what the viewer may not know of: told before what else is wrong with them, at every door.
 * A field of which an id is missing, or none at all, is left to be told that.
 */
export async function findRefused(located: Located, context: Context): Promise<Refused[]> {
  const { schema, operation } = located;
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  const refused = await Promise.all(
    listRootFields(located).map(async (node) => {
      const field = fields[node.name.value];
      const ids = field && readIds(field, node, located);
      if (!ids) return [];
      const openNamed: Locate = async () => {
        const project = readProjectIds(field, ids);
        if (project) await context.openProject(project);
      };
      const { locate = openNamed } = field.extensions as { locate?: Locate };
      return locate(ids, context).then(
        () => [],
        (failure: unknown) => [{ node, failure }],
      );
    }),
  );
  return refused.flat();
}

/** The project among the ids of a root field; null where none of them is one. */
function readProjectIds({ extensions }: GraphQLField<unknown, unknown>, ids: LocatingIds): ProjectIds | null {
  const { projectArgument = 'projectId' } = extensions as { projectArgument?: string };
  const projectId = ids[projectArgument];
  return projectId === undefined ? null : { organizationId: ids.organizationId, projectId };
}

/** The first project that a root field names; null where none does. Nothing is checked by this. */
export function findProjectIds(located: Located): ProjectIds | null {
  const { schema, operation } = located;
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  for (const node of listRootFields(located)) {
    const field = fields[node.name.value];
    const ids = field && readIds(field, node, located);
    const project = field && ids ? readProjectIds(field, ids) : null;
    if (project) return project;
  }
  return null;
}

/** The root fields of an operation, each response name once. */
export function listRootFields({ document, operation }: Pick<Located, 'document' | 'operation'>): FieldNode[] {
  const found = new Map<string, FieldNode>();
  const spread = new Set<string>();
  const collect = ({ selections }: SelectionSetNode) => {
    for (const node of selections) {
      if (node.kind === Kind.FIELD) {
        const name = node.alias?.value ?? node.name.value;
        if (!found.has(name)) found.set(name, node);
      } else if (node.kind === Kind.INLINE_FRAGMENT) collect(node.selectionSet);
      else if (!spread.has(node.name.value)) {
        spread.add(node.name.value);
        for (const part of document.definitions)
          if (part.kind === Kind.FRAGMENT_DEFINITION && part.name.value === node.name.value) collect(part.selectionSet);
      }
    }
  };
  collect(operation.selectionSet);
  return [...found.values()];
}

/** Null where one that is required is missing, or one is no id. */
function readIds(field: GraphQLField<unknown, unknown>, node: FieldNode, located: Located): LocatingIds | null {
  const ids: Record<string, string> = {};
  const read = (definitions: ReadonlyArray<Pick<GraphQLInputField, 'name' | 'type' | 'defaultValue'>>, values: Values): boolean =>
    definitions.every((definition) => {
      const type = getNamedType(definition.type);
      const value = values(definition.name);
      if (isInputObjectType(type) && definition.name === 'input') return isValues(value) && read(Object.values(type.getFields()), value);
      if (type !== GraphQLID || isListType(getNullableType(definition.type))) return true;
      if ((value === undefined || value === null) && !isRequiredInputField(definition as GraphQLInputField)) return true;
      if (typeof value !== 'string' && !Number.isInteger(value)) return false;
      ids[definition.name] = String(value);
      return true;
    });
  const given = new Map((node.arguments ?? []).map(({ name, value }) => [name.value, value]));
  return read(field.args, (name) => readValue(given.get(name), located)) ? ids : null;
}

/** What a name stands for, among the arguments of a field or in an input object. */
type Values = (name: string) => unknown;

const isValues = (value: unknown): value is Values => typeof value === 'function';

function readValue(node: ValueNode | undefined, located: Located): unknown {
  if (node?.kind === Kind.OBJECT) {
    const fields = new Map(node.fields.map(({ name, value }) => [name.value, value]));
    return (name: string) => readValue(fields.get(name), located);
  }
  if (node?.kind !== Kind.VARIABLE) return node && valueFromASTUntyped(node);
  const name = node.name.value;
  const { operation, variables } = located;
  if (!Object.hasOwn(variables, name)) {
    const definition = operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
    return readValue(definition?.defaultValue, located);
  }
  const value = variables[name];
  if (typeof value !== 'object' || value === null) return value;
  return (part: string) => (Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined);
}
