import type { ServerResponse } from 'node:http';
import { exchangeOf } from './exchange.ts';

/** Sets the headers of the exchange on a response that a library writes. */
export function setHeaders(response: ServerResponse): void {
  const { headers } = exchangeOf(response.req);
  for (let index = 0; index < headers.length; index += 2) response.setHeader(headers[index] ?? '', headers[index + 1] ?? '');
  headers.length = 0;
}

/** Writes a JSON response whole. */
export function sendJson(response: ServerResponse, status: number, body: unknown, headers?: Readonly<Record<string, string>>): void {
  send(response, status, JSON.stringify(body), 'application/json', headers);
}

/** Writes a response whole. A HEAD request is answered with the same headers, without the body. */
export function send(
  response: ServerResponse,
  status: number,
  body: string | Buffer,
  mediaType: string,
  headers?: Readonly<Record<string, string>>,
): void {
  writeHead(response, status, { ...headers, 'Content-Type': mediaType, 'Content-Length': String(Buffer.byteLength(body)) });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

export function sendEmpty(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  writeHead(response, status, headers);
  response.end();
}

/** Passes the headers as one list, which Node writes as it is: headers that are set one by one are checked, stored and read again. */
function writeHead(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>): void {
  const list = exchangeOf(response.req).headers;
  for (const name of Object.keys(headers)) {
    if (name === 'Vary') addVary(list, headers[name] ?? '');
    else list.push(name, headers[name] ?? '');
  }
  response.writeHead(status, list);
}

/** Extends the one `Vary` header: of two, some clients see only the last. */
function addVary(list: string[], value: string): void {
  const index = list.indexOf('Vary');
  if (index < 0) list.push('Vary', value);
  else list[index + 1] += `, ${value}`;
}
