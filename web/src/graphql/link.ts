import { ApolloLink, CombinedGraphQLErrors, Observable } from '@apollo/client';
import { print } from 'graphql';
import type { Portico, PorticoError } from 'portico-client';

/** Sends each operation by the client package: it has the credential, waits where the server asks to wait, and tries again. */
export function porticoLink(portico: Portico): ApolloLink {
  return new ApolloLink(
    ({ query, variables }) =>
      new Observable((observer) => {
        const leaving = new AbortController();
        portico.query(print(query), variables, { signal: leaving.signal }).then(
          ({ data, error }) => {
            // An error of the answer goes on with its path; all else is the network's, or says when to come back.
            if (error && (error.errors.length === 0 || error.retryAfterMs !== null)) return observer.error(error);
            observer.next({ data: data as Record<string, unknown> | null, ...(error && { errors: error.errors as never }) });
            observer.complete();
          },
          (failure: unknown) => observer.error(failure),
        );
        return () => leaving.abort();
      }),
  );
}

/** What went wrong, in one form for all pages. */
export interface Failure {
  /** A code of docs/errors.md, or of the client package. */
  readonly code: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, readonly string[]>>;
  readonly context: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
}

export function toFailure(error: unknown): Failure {
  if (CombinedGraphQLErrors.is(error)) {
    const [first] = error.errors;
    const { code = 'internal_error', fields = {}, context = {} } = first?.extensions ?? {};
    return { code, fields, context, message: first?.message ?? error.message, retryAfterMs: null } as Failure;
  }
  const { code = 'internal_error', message, retryAfterMs = null } = error as PorticoError;
  return { code, message, fields: {}, context: {}, retryAfterMs };
}
