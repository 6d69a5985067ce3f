/**
 * The codes with which Portico closes a WebSocket. Of those of a GraphQL socket, the graphql-ws client reconnects by itself after
 * 1012, 1013, 4403 and 4408, and gives up after the others; it has nothing to do with the codes of consoles. docs/feed.md and
 * docs/consoles.md describe every code.
 */
export const closeCodes = {
  normal: 1000,
  unsupportedData: 1003,
  restart: 1012,
  tryAgainLater: 1013,
  badRequest: 4400,
  unauthorized: 4401,
  /** The client may reconnect with a fresh credential. */
  forbidden: 4403,
  gone: 4404,
  notAcceptable: 4406,
  initTimeout: 4408,
  idInUse: 4409,
  idle: 4408,
  takenOver: 4409,
  ended: 4410,
  notKept: 4416,
  tooManyMessages: 4429,
  unreachable: 4502,
} as const;

export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes];

/** The codes of clients that leave, and of connections that break. */
const codesOfClients = [1000, 1001, 1005, 1006];

/** The labels of the metric for a close that Portico did not begin: a client may send any code, also those above. */
export const labelsOfClient = (code: number) => ({ code: codesOfClients.includes(code) ? code : 'other', reason: 'none' });

/** The labels for a close that Portico began. A reason may have a sentence for the client, after a colon. */
export const labelsOfServer = ({ code, reason }: { readonly code: number; readonly reason: string }) => ({
  code,
  reason: reason.replace(/:.*/s, ''),
});

/** The closes that alarms watch. */
export const watchedCloses = [
  { code: closeCodes.forbidden, reason: 'access_lost' },
  { code: closeCodes.unreachable, reason: 'console_unreachable' },
] as const;

/** A rejected upgrade whose reason the client can read: the socket is opened, then closed at once with the code and reason. */
export class Rejection {
  constructor(
    readonly code: CloseCode,
    readonly reason: string,
  ) {}
}
