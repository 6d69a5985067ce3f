import { type DocumentNode, getOperationAST, Kind } from 'graphql';

/** An operation for the log and the metrics: its type and root field, such as `query project`. The schema bounds how many there are. */
export function describeOperation(document: DocumentNode, operationName: string | null | undefined): string {
  const operation = getOperationAST(document, operationName);
  if (!operation) return 'graphql';
  const names = new Set(
    operation.selectionSet.selections.map((selection) => (selection.kind === Kind.FIELD ? selection.name.value : 'fragment')),
  );
  const [first] = names;
  return `${operation.operation} ${names.size === 1 ? first : 'several'}`;
}
