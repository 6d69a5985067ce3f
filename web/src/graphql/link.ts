import { ApolloLink, CombinedGraphQLErrors, Observable } from '@apollo/client';
import { print } from 'graphql';
import { describeFields, type FieldErrors, type Portico, type PorticoError } from 'portico-client';

/** Sends each operation through the client package, which adds the credential, honours Retry-After and retries. */
export function porticoLink(portico: Portico): ApolloLink {
  return new ApolloLink(
    ({ query, variables }) =>
      new Observable((observer) => {
        const controller = new AbortController();
        portico.query(print(query), variables, { signal: controller.signal }).then(
          ({ data, error }) => {
            // GraphQL errors are passed on with their paths; network errors and those with a retry delay fail the whole operation.
            if (error && (error.errors.length === 0 || error.retryAfterMs !== null)) return observer.error(error);
            observer.next({ data: data as Record<string, unknown> | null, ...(error && { errors: error.errors as never }) });
            observer.complete();
          },
          (failure: unknown) => observer.error(failure),
        );
        return () => controller.abort();
      }),
  );
}

/** An error in one shape for all pages. */
export interface Failure {
  /** A code of docs/errors.md or of the client package. */
  readonly code: string;
  /** A sentence for people; of field errors, the fields with what is wrong with each. */
  readonly message: string;
  readonly fields: FieldErrors;
  readonly context: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | null;
}

/** Whether a write that failed may have been executed. It is sent again with the same idempotency key. */
export const isUncertain = ({ code }: Failure): boolean => ['unreachable', 'service_unavailable', 'internal_error'].includes(code);

export function toFailure(error: unknown): Failure {
  if (CombinedGraphQLErrors.is(error)) {
    const [first] = error.errors;
    const { code = 'internal_error', fields = {}, context = {} } = (first?.extensions ?? {}) as Partial<Failure>;
    return { code, fields, context, message: describeFields(fields) ?? first?.message ?? error.message, retryAfterMs: null };
  }
  const { code = 'internal_error', message, fields = {}, retryAfterMs = null } = error as PorticoError;
  return { code, message, fields, context: {}, retryAfterMs };
}
