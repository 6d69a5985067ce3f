import type { ConnectionInitMessage, Context as GraphqlWsContext } from 'graphql-ws';
import { admit } from '../../access/admission.ts';
import { readBearerText } from '../../access/credential.ts';
import type { RateLimits } from '../../access/ratelimits.ts';
import type { CredentialProblem } from '../../kernel/fault.ts';
import { toFault } from '../../platform/errors.ts';
import { closeCodes } from './close.ts';
import type { ConnectionDependencies, SocketConnection } from './connection.ts';

/** The part of graphql-ws' context of a socket that holds the payload of its `connection_init` message. */
type InitContext = Pick<GraphqlWsContext<ConnectionInitMessage['payload']>, 'connectionParams'>;

interface InitDependencies extends ConnectionDependencies {
  readonly rateLimits: RateLimits;
}

/** The reason names the right place, for a client that sends its credential elsewhere in `connection_init`. */
const missingCredentialReason = 'not_authenticated: connection_init takes {"authorization": "Bearer …"}';

/**
 * Admits a client by the credential in `connection_init`: `{ "authorization": "Bearer …" }`. Returns whether it is admitted; the
 * connection of one that is not is closed.
 */
export async function admitInit(connection: SocketConnection, context: InitContext, dependencies: InitDependencies): Promise<boolean> {
  const { authorization, Authorization, token } = context.connectionParams ?? {};
  // graphql-ws would hold the secret in memory as long as the socket is open.
  delete (context as { connectionParams?: unknown }).connectionParams;
  if (connection.viewer) return true;
  const credential = authorization ?? Authorization ?? (typeof token === 'string' ? `Bearer ${token}` : null);
  try {
    const { viewer, fault } = await admit(dependencies, {
      readCredential: () => (credential === null ? null : readBearerText(credential)),
      readAddress: () => connection.address,
    });
    if (fault) throw fault;
    if (!viewer) closeUnauthorized(connection);
    else if (dependencies.socketLimit.isFull(viewer.userId)) connection.close(closeCodes.tryAgainLater, 'too_many_sockets');
    else connection.signIn(viewer);
  } catch (failure) {
    const { code, reason } = toFault(failure);
    if (reason) logRefusal(connection, reason);
    connection.close(code === 'not_authenticated' ? closeCodes.forbidden : closeCodes.tryAgainLater, code);
  }
  return connection.isOpen;
}

function closeUnauthorized(connection: SocketConnection): void {
  logRefusal(connection, 'missing');
  connection.close(closeCodes.unauthorized, missingCredentialReason);
}

/** Says what is wrong with the credential, which the reason of the close frame does not. */
function logRefusal({ log }: SocketConnection, reason: CredentialProblem): void {
  log.info({ code: 'not_authenticated', reason }, 'connection_init refused');
}
