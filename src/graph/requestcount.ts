import { type DocumentNode, OperationTypeNode, type SelectionSetNode, visit } from 'graphql';
import { getOrInsert } from '../kernel/map.ts';
import { groupFields, hasArgument, listRootFields, type ParsedOperation } from './accesscheck.ts';

/**
 * The number of requests that an operation counts as: of a mutation its root fields, of which each writes as much as a request of
 * its own, and of a query its lists with a filter, of which each may search an index to its end. At least one.
 */
export function countRequests(parsed: ParsedOperation): number {
  const { document, operation } = parsed;
  if (operation.operation === OperationTypeNode.MUTATION) return Math.max(listRootFields(parsed).length, 1);
  if (operation.operation !== OperationTypeNode.QUERY || !hasFilter(document)) return 1;
  return Math.max(countFilteredLists([operation.selectionSet], parsed), 1);
}

function countFilteredLists(selectionSets: readonly SelectionSetNode[], parsed: ParsedOperation): number {
  let count = 0;
  for (const [first, ...others] of groupFields(selectionSets, parsed).values()) {
    if (!first) continue;
    if (hasArgument(first, FILTER, parsed)) count += 1;
    const below = [first, ...others].flatMap(({ selectionSet }) => selectionSet ?? []);
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
