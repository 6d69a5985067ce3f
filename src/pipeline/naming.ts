import { type DocumentNode, GraphQLError, getOperationAST, Kind } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { type FaultCode, statusByCode } from '../kernel/fault.ts';
import type { OperationArgs, OperationContext } from './operation.ts';

/** The logged length of a name, which the client chooses. */
const MAX_LOGGED_LENGTH = 100;

/**
 * Passes the name of the operation to the transport, for its log and metrics. Rejects a name that the document does not have; an empty
 * one is none, by every transport.
 */
export function nameOperations(): Plugin<OperationContext> {
  const name = ({ args }: { args: OperationArgs }) => {
    const { exchange } = args.contextValue;
    if (!exchange) return;
    exchange.operation = labelOperation(args.document, args.operationName);
    exchange.operationName = getOperationAST(args.document, args.operationName)?.name?.value.slice(0, MAX_LOGGED_LENGTH) ?? null;
  };
  return {
    onExecute: name,
    onSubscribe: name,
    onParams({ params, setParams }) {
      if (params.operationName === '') setParams({ ...params, operationName: undefined });
    },
    // Yoga would say only that it could not determine the operation. Of another transport, the context has no `params`.
    onParse: () => {
      return ({ result, context: { params } }: { result: unknown; context: { params?: { operationName?: unknown } } }) => {
        if (result instanceof Error || result === null) return;
        checkOperationName(result as DocumentNode, params?.operationName);
      };
    },
  };
}

/**
 * Throws `invalid_request`, with the status 400 in every media type, for the name of an operation that the document does not have. The
 * name is not repeated: what a client sends by mistake may be a secret.
 */
export function checkOperationName(document: DocumentNode, operationName: unknown): void {
  if (typeof operationName !== 'string' || getOperationAST(document, operationName)) return;
  const code: FaultCode = 'invalid_request';
  throw new GraphQLError('The document has no operation with the given name.', {
    extensions: { code, http: { status: statusByCode[code] } },
  });
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
