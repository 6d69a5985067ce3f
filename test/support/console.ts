import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import WebSocket from 'ws';
import type { Ask, TestApp } from './app.ts';

/** A test server that stands in for the console of an instance. */
export interface Guest {
  readonly port: number;
  /** The open connections. */
  readonly lines: Set<Socket>;
  /** The number of connections accepted so far. */
  readonly connections: () => number;
  /** All bytes received from its connections, in the order of arrival. */
  readonly heard: () => Buffer;
  /** Writes bytes to every open connection. */
  say(bytes: Buffer | string): void;
  /** Resolves with a connection once one is open. */
  called(): Promise<Socket>;
  close(): Promise<void>;
}

/** Opens a console that writes nothing unless `onLine`, called for each new connection, makes it. */
export async function openGuest(
  onLine: (line: Socket) => void = () => {},
  listenAt: { path?: string; port?: number } = {},
): Promise<Guest> {
  const lines = new Set<Socket>();
  const chunks: Buffer[] = [];
  let connections = 0;
  const server: Server = createServer((line) => {
    connections += 1;
    lines.add(line);
    line.on('data', (bytes: Buffer) => chunks.push(bytes));
    line.on('error', () => {});
    line.on('close', () => lines.delete(line));
    onLine(line);
  });
  await new Promise<void>((resolve) =>
    server.listen(listenAt.path ? { path: listenAt.path } : { port: listenAt.port ?? 0, host: '127.0.0.1' }, resolve),
  );
  return {
    port: listenAt.path ? 0 : (server.address() as AddressInfo).port,
    lines,
    connections: () => connections,
    heard: () => Buffer.concat(chunks),
    say: (bytes) => {
      for (const line of lines) line.write(bytes);
    },
    async called() {
      for (let tries = 0; tries < 6_000; tries += 1) {
        const [line] = lines;
        if (line) return line;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      throw new Error('nobody has called the console');
    },
    async close() {
      for (const line of lines) line.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Stores the address of an instance's console, as an operator does. */
export async function setEndpoint(
  { app }: Pick<TestApp, 'app'>,
  instanceId: string,
  { kind = 'serial', port, path }: { kind?: 'serial' | 'vnc'; port?: number; path?: string },
): Promise<void> {
  const address =
    path === undefined ? { host: '127.0.0.1', port: port ?? 0, socketPath: null } : { host: null, port: null, socketPath: path };
  await app.database.prisma.consoleEndpoint.upsert({
    where: { instanceId },
    create: { instanceId, kind, ...address },
    update: { kind, ...address },
  });
}

export interface ConsoleSocket {
  readonly socket: WebSocket;
  /** The session's id, from the headers of the upgrade response. */
  readonly sessionId: () => string;
  /** The position of the first received byte, from the same headers. */
  readonly offset: () => number;
  /** All bytes received in binary frames. */
  readonly output: () => Buffer;
  /** The text frames received. */
  readonly texts: string[];
  readonly opened: Promise<void>;
  readonly closed: Promise<{ code: number; reason: string }>;
  /** Resolves with status and body if the upgrade is rejected. */
  readonly refused: Promise<{ status: number; body: string }>;
  /** Resolves once the output contains the text. */
  until(text: string): Promise<void>;
}

/** Opens a WebSocket at a path of an app and records what it receives. */
export function openConsoleSocket(
  baseUrl: string,
  path: string,
  { protocols = [], headers = {} }: { protocols?: string[]; headers?: Record<string, string> } = {},
): ConsoleSocket {
  const socket = new WebSocket(baseUrl.replace('http', 'ws') + path, protocols, { headers, perMessageDeflate: false });
  const chunks: Buffer[] = [];
  const texts: string[] = [];
  let received: Record<string, unknown> = {};
  const waiting = new Set<() => void>();
  socket.on('upgrade', (response) => {
    received = response.headers;
  });
  socket.on('message', (data, isBinary) => {
    if (isBinary) chunks.push(data as Buffer);
    else texts.push(String(data));
    for (const check of waiting) check();
  });
  socket.on('error', () => {});
  const opened = new Promise<void>((resolve) => socket.once('open', resolve));
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: String(reason) })),
  );
  const refused = new Promise<{ status: number; body: string }>((resolve) =>
    socket.once('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    }),
  );
  const output = () => Buffer.concat(chunks);
  return {
    socket,
    sessionId: () => String(received['x-console-session-id']),
    offset: () => Number(received['x-console-offset']),
    output,
    texts,
    opened,
    closed,
    refused,
    until: (text) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (!output().includes(text)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
        closed.then(({ code, reason }) => reject(new Error(`closed with ${code} ${reason} before "${text}" came`)));
      }),
  };
}

type Role = 'owner' | 'admin' | 'member' | 'viewer';

export async function takeConsoleTicket(
  app: Pick<TestApp, 'ask' | 'projectPath'>,
  instanceId: string,
  { as = 'member', sessionId }: { as?: Ask['as']; sessionId?: string } = {},
): Promise<{ ticket: string; path: string }> {
  const body = { target: 'console', instance_id: instanceId, ...(sessionId && { session_id: sessionId }) };
  const response = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as, body });
  if (response.status !== 201) throw new Error(response.text);
  return response.json;
}

/** Opens a console with a ticket. */
export async function openConsole(
  app: Pick<TestApp, 'ask' | 'projectPath' | 'baseUrl'>,
  instanceId: string,
  { as, sessionId, after, protocols }: { as?: Role; sessionId?: string; after?: number | string; protocols?: string[] } = {},
): Promise<ConsoleSocket> {
  const { path, ticket } = await takeConsoleTicket(app, instanceId, { as, sessionId });
  const query = after === undefined ? '' : `&after=${after}`;
  return openConsoleSocket(app.baseUrl, `${path}?ticket=${ticket}${query}`, { protocols });
}
