import { NetworkStatus, type OperationVariables, type TypedDocumentNode } from '@apollo/client';
import { useQuery } from '@apollo/client/react';
import { type ReactNode, useRef } from 'react';
import { type Failure, toFailure } from '../graphql/link.ts';
import { useEnded } from '../session/ended.ts';
import { Loading, Problem } from './states.tsx';

interface QueryProps<Data, Variables> {
  readonly document: TypedDocumentNode<Data, Variables>;
  readonly variables: Variables;
  readonly loading?: ReactNode;
  /** Wraps the error message if no data has been loaded. */
  frame?(problem: ReactNode, failure: Failure): ReactNode;
  children(data: Data, refetch: () => void): ReactNode;
}

/** Runs a query and renders its data or its error. While it fails, the last data stays, greyed. */
export function Query<Data, Variables extends OperationVariables>(props: QueryProps<Data, Variables>) {
  const { document, variables, loading, frame = (problem) => problem, children } = props;
  const { data, previousData, error, networkStatus, refetch } = useQuery(document, { variables } as never) as unknown as {
    data?: Data;
    previousData?: Data;
    error?: unknown;
    networkStatus: NetworkStatus;
    refetch(): Promise<unknown>;
  };
  // An error stays until its retry has ended: it would be gone for a moment, and be read out again.
  const latest = useRef<Failure | null>(null);
  if (error || networkStatus !== NetworkStatus.refetch) latest.current = error ? toFailure(error) : null;
  const failure = latest.current;
  const isSignedOut = useEnded(failure?.code);
  const retry = () => {
    refetch().catch(() => {});
  };
  const shown = data ?? previousData;
  if (isSignedOut) return null;
  if (!shown) return failure ? frame(<Problem failure={failure} retry={retry} />, failure) : (loading ?? <Loading />);
  return (
    <>
      {failure && <Problem failure={failure} retry={retry} />}
      <div className={failure ? 'stale' : undefined}>{children(shown, retry)}</div>
    </>
  );
}
