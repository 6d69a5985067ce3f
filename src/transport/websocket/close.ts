/**
 * How Portico closes a WebSocket. The graphql-ws client comes back by itself after 1001, 1012, 1013, 4403 and 4408, and
 * gives up after the others: docs/feed.md tells clients of every one.
 */
export const closeCodes = {
  goingAway: 1001,
  restart: 1012,
  tryAgainLater: 1013,
  badRequest: 4400,
  unauthorized: 4401,
  comeBackWithFreshCredential: 4403,
  notAcceptable: 4406,
  tooManyMessages: 4429,
} as const;

export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes];
