import type { IncomingMessage } from 'node:http';

/** A body up to this size mostly arrives with the headers: the limit on connections bounds the memory of such bodies. */
export const SMALL_BYTES = 16 * 1024;

/** Whether the headers declare a body that is not empty. */
export function declaresBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Whether the headers declare a small body that is not compressed. */
export function isSmallBody({ headers }: IncomingMessage): boolean {
  const isPlain = headers['transfer-encoding'] === undefined && headers['content-encoding'] === undefined;
  return isPlain && Number(headers['content-length'] ?? 0) <= SMALL_BYTES;
}
