import {
  type ASTNode,
  type GraphQLInputType,
  type GraphQLResolveInfo,
  getNullableType,
  isInputObjectType,
  isListType,
  Kind,
  print,
  visit,
} from 'graphql';
import { CanonicalText, canonicalJson } from '../kernel/json/canonical.ts';
import { getOrInsert } from '../kernel/map.ts';

type Info = Pick<GraphQLResolveInfo, 'fieldName' | 'fieldNodes' | 'fragments' | 'parentType' | 'variableValues'>;

/**
 * A canonical text of a request, equal for equal requests: the field, its input and its selection. White space, the alias of
 * the field and the other fields of the document are left out; so is the document of a v1 request, which is the server's own.
 * Defaults are left out, too: a release may add an input field that has one, and the requests from before stay the same.
 */
export function describeRequest(info: Info, input: Readonly<Record<string, unknown>>, v1Operation: string | null): string {
  const { idempotencyKey: _key, ...fields } = input;
  const type = info.parentType.getFields()[info.fieldName]?.args.find(({ name }) => name === 'input')?.type;
  return canonicalJson([info.fieldName, type ? omitDefaults(type, fields) : fields, v1Operation ?? describeSelection(info)]);
}

/** The texts of JSON values: a document may name the same large variable in many fields. */
const canonicalTexts = new WeakMap<object, CanonicalText>();
const toCanonical = (value: object) => new CanonicalText(canonicalJson(value));

/** A value of an input type without the fields that have their defaults. */
function omitDefaults(declared: GraphQLInputType, value: unknown): unknown {
  const type = getNullableType(declared);
  if (isListType(type)) return Array.isArray(value) ? value.map((item) => omitDefaults(type.ofType, item)) : value;
  if (!isInputObjectType(type))
    return typeof value === 'object' && value !== null ? getOrInsert(canonicalTexts, value, toCanonical) : value;
  const fields = type.getFields();
  const given = Object.entries(value ?? {}).filter(([name, item]) => item !== fields[name]?.defaultValue);
  return Object.fromEntries(given.map(([name, item]) => [name, fields[name] ? omitDefaults(fields[name].type, item) : item]));
}

/** The selection, with its fragments and the values of its variables. */
function describeSelection({ fieldNodes, fragments, variableValues }: Info) {
  const variables: Record<string, unknown> = Object.create(null);
  const texts: string[] = [];
  const pending: ASTNode[] = fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  const visited = new Set<string>();
  for (const node of pending) {
    texts.push(print(node));
    visit(node, {
      Variable({ name }) {
        variables[name.value] = variableValues[name.value];
      },
      [Kind.FRAGMENT_SPREAD]({ name }) {
        const fragment = fragments[name.value];
        if (!fragment || visited.has(name.value)) return;
        visited.add(name.value);
        pending.push(fragment);
      },
    });
  }
  return { texts, variables };
}
