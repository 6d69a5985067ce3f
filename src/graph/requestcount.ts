import { type DocumentNode, OperationTypeNode, type SelectionSetNode, visit } from 'graphql';
import { getOrInsert } from '../kernel/map.ts';
import { groupFields, hasArgument, listRootFields, type ParsedOperation } from './parsedoperation.ts';

/**
 * The number of requests that an operation counts as: the root fields of a mutation, of which each writes as much as a request of
 * its own, and the lists with a filter, of which each may search an index to its end. A query counts as one at least.
 */
export function countRequests(parsed: ParsedOperation): number {
  const { document, operation } = parsed;
  const writes = operation.operation === OperationTypeNode.MUTATION ? listRootFields(parsed).length : 0;
  const lists = hasFilter(document) ? countFilteredLists([operation.selectionSet], parsed) : 0;
  return Math.max(writes + lists, 1);
}

function countFilteredLists(selectionSets: readonly SelectionSetNode[], parsed: ParsedOperation): number {
  let count = 0;
  for (const fields of groupFields(selectionSets, parsed).values()) {
    // Fields of one name in the response may be those of different types.
    const filtered = fields.filter((field) => hasArgument(field, FILTER, parsed));
    count += new Set(filtered.map(({ name }) => name.value)).size;
    const below = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
    if (below.length > 0) count += countFilteredLists(below, parsed);
  }
  return count;
}

/** The argument with this name is the filter of a list in the whole schema. */
const FILTER = 'filter';

const filtering = new WeakMap<DocumentNode, boolean>();

/** Whether any list of a document has a filter; found once for each document. */
function hasFilter(document: DocumentNode): boolean {
  return getOrInsert(filtering, document, () => {
    let isFound = false;
    visit(document, {
      Argument({ name }) {
        isFound ||= name.value === FILTER;
      },
    });
    return isFound;
  });
}
