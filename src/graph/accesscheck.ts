import {
  type FieldNode,
  type GraphQLField,
  GraphQLID,
  type GraphQLInputField,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  isRequiredInputField,
} from 'graphql';
import type { ProjectIds } from '../access/scope.ts';
import type { Context } from './context.ts';
import { listRootFields, ObjectArgument, type ParsedOperation, readArgument } from './parsedoperation.ts';

/** The `ID` arguments of a root field, and those of its `input`, by name, as far as they are present. */
type ResourceIds = Readonly<Record<string, string>>;

/**
 * Checks access to the object that the ids name, and throws `not_found` as the field itself would. A root field declares it in
 * its `extensions` as `checkAccess`; by default, `organizationId` and `projectId` name a project. If the argument for the project's
 * id has another name, the extension `projectArgument` gives it.
 */
export type CheckAccess = (ids: ResourceIds, context: Context) => Promise<unknown>;

/** A root field whose ids name an object that cannot be opened, with the error. */
export interface InaccessibleField {
  readonly node: FieldNode;
  readonly failure: unknown;
}

/**
 * The root fields whose ids name an object without access: reported before any other error of the fields, by every API. A
 * field with a missing or malformed id is left out, and gets that error.
 */
export async function findInaccessibleFields(parsed: ParsedOperation, context: Context): Promise<InaccessibleField[]> {
  const inaccessible = await Promise.all(
    [...walkFieldIds(parsed)].map(async ({ node, field, ids }) => {
      const openNamedProject: CheckAccess = async () => {
        const project = readProjectIds(field, ids);
        if (project) await context.openProject(project);
      };
      const { checkAccess = openNamedProject } = field.extensions as { checkAccess?: CheckAccess };
      return checkAccess(ids, context).then(
        () => [],
        (failure: unknown) => [{ node, failure }],
      );
    }),
  );
  return inaccessible.flat();
}

/** The project that the ids of a root field name; null if they name none. */
function readProjectIds({ extensions }: GraphQLField<unknown, unknown>, ids: ResourceIds): ProjectIds | null {
  const { projectArgument = 'projectId' } = extensions as { projectArgument?: string };
  const projectId = ids[projectArgument];
  return projectId === undefined ? null : { organizationId: ids.organizationId, projectId };
}

/** The first project that a root field names; null if none does. Checks no access. */
export function findProjectIds(parsed: ParsedOperation): ProjectIds | null {
  for (const { field, ids } of walkFieldIds(parsed)) {
    const project = readProjectIds(field, ids);
    if (project) return project;
  }
  return null;
}

/** The root fields with their ids, without those of which an id is missing or malformed. */
function* walkFieldIds(parsed: ParsedOperation) {
  const { schema, operation } = parsed;
  const fields = schema.getRootType(operation.operation)?.getFields() ?? {};
  for (const node of listRootFields(parsed)) {
    const field = fields[node.name.value];
    const ids = field && readIds(field, node, parsed);
    if (field && ids) yield { node, field, ids };
  }
}

/** Null if a required id is missing or malformed. */
function readIds(field: GraphQLField<unknown, unknown>, node: FieldNode, parsed: ParsedOperation): ResourceIds | null {
  const ids: Record<string, string> = {};
  const collect = (definitions: readonly Definition[], read: (name: string) => unknown): boolean =>
    definitions.every((definition) => {
      const { name, type } = definition;
      const named = getNamedType(type);
      const value = read(name);
      if (isInputObjectType(named) && name === 'input')
        return value instanceof ObjectArgument && collect(Object.values(named.getFields()), value.field);
      const isId = named === GraphQLID && !isListType(getNullableType(type));
      if (!isId || isOmitted(definition, value)) return true;
      if (typeof value !== 'string' && !Number.isInteger(value)) return false;
      ids[name] = String(value);
      return true;
    });
  const literals = new Map((node.arguments ?? []).map(({ name, value }) => [name.value, value]));
  return collect(field.args, (name) => readArgument(literals.get(name), parsed)) ? ids : null;
}

/** An argument of a field, or a field of an input object. */
type Definition = Pick<GraphQLInputField, 'name' | 'type' | 'defaultValue'>;

function isOmitted(definition: Definition, value: unknown): boolean {
  return (value === undefined || value === null) && !isRequiredInputField(definition as GraphQLInputField);
}
