import { type DocumentNode, type ExecutionArgs, getOperationAST, Kind } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { OperationContext } from './operation.ts';

/** Passes the name of the operation to the transport, for its log and metrics. */
export function nameOperations(): Plugin {
  const name = ({ args }: { args: ExecutionArgs }) => {
    const { exchange } = args.contextValue as OperationContext;
    if (!exchange) return;
    exchange.operation = labelOperation(args.document, args.operationName);
    exchange.operationName = getOperationAST(args.document, args.operationName)?.name?.value.slice(0, 100) ?? null;
  };
  return { onExecute: name, onSubscribe: name };
}

/** The label of an operation in log and metrics: its type and root field, such as `query project`. The schema bounds their number. */
export function labelOperation(document: DocumentNode, operationName: string | null | undefined): string {
  const operation = getOperationAST(document, operationName);
  if (!operation) return 'graphql';
  const names = new Set(
    operation.selectionSet.selections.map((selection) => (selection.kind === Kind.FIELD ? selection.name.value : 'fragment')),
  );
  const [first] = names;
  return `${operation.operation} ${names.size === 1 ? first : 'several'}`;
}
