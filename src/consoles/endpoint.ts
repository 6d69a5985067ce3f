import { connect, type Socket } from 'node:net';
import { ConsoleKind } from '../generated/prisma/enums.ts';
import { textProblem } from '../kernel/text.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';

/** How long a console may take to accept a connection. */
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 30_000;

/** Where the console of an instance listens: as an operator wrote it, whole. Nothing of it is ever a client's. */
export interface Endpoint {
  readonly kind: ConsoleKind;
  readonly host: string | null;
  readonly port: number | null;
  readonly socketPath: string | null;
}

export function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.kind === other.kind && one.host === other.host && one.port === other.port && one.socketPath === other.socketPath;
}

/** What is read of a console, into whose memory: it is the reader's own, and nobody else's once it is filled. */
export interface Reader {
  /** The memory for the next bytes. */
  readonly buffer: () => Uint8Array;
  readonly callback: (length: number, buffer: Uint8Array) => boolean;
}

/**
 * Begins to connect: what is written meanwhile goes out afterwards. Fails as a socket does, also for want of an answer in
 * time. What may wait to be written before the writer should is `waitingBytes`.
 */
export function connectEndpoint({ host, port, socketPath }: Endpoint, onread: Reader, waitingBytes: number): Socket {
  const address = socketPath === null ? { host: host ?? '', port: port ?? 0 } : { path: socketPath };
  const options = { ...address, onread, writableHighWaterMark: waitingBytes };
  const line = connect(options);
  line.setNoDelay(true);
  line.setKeepAlive(true, KEEP_ALIVE_MS);
  line.setTimeout(CONNECT_TIMEOUT_MS, () => line.destroy(new Error('the console does not answer')));
  line.once('connect', () => line.setTimeout(0));
  return line;
}

/** What an operator asked for cannot be done: the message is for the operator. */
export class EndpointError extends Error {}

/** Says where the console of an instance listens, in the place of what was said before. Throws an EndpointError. */
export async function setEndpoint(
  database: Database,
  instance: string,
  { kind, tcp, unix }: { kind: string; tcp?: string; unix?: string },
): Promise<string> {
  const instanceId = readInstanceId(instance);
  const kinds = Object.values(ConsoleKind);
  const known = kinds.find((one) => one === kind);
  if (!known) throw new EndpointError(`${kind} is no kind of console: one of ${kinds.join(', ')}.`);
  const address = readAddress(tcp, unix);
  if (!(await database.instance.findUnique({ where: { id: instanceId }, select: { id: true } })))
    throw new EndpointError('There is no such instance.');
  const data = { kind: known, ...address };
  await database.consoleEndpoint.upsert({ where: { instanceId }, create: { instanceId, ...data }, update: data });
  return `The ${kind} console of the instance is ${unix ?? tcp}.`;
}

/** From now on the instance has no console. Throws an EndpointError where it had none. */
export async function removeEndpoint(database: Database, instance: string): Promise<string> {
  const { count } = await database.consoleEndpoint.deleteMany({ where: { instanceId: readInstanceId(instance) } });
  if (count === 0) throw new EndpointError('The instance has no console.');
  return 'The instance has no console any more.';
}

function readInstanceId(text: string): string {
  const id = parseUuid(text);
  if (!id) throw new EndpointError(`${text} is no UUID.`);
  return id;
}

function readAddress(tcp: string | undefined, unix: string | undefined): Omit<Endpoint, 'kind'> {
  if ((tcp === undefined) === (unix === undefined)) throw new EndpointError('Give either --tcp or --unix.');
  if (unix !== undefined) {
    if (!unix.startsWith('/') || textProblem(unix)) throw new EndpointError(`${unix} is no absolute path.`);
    return { host: null, port: null, socketPath: unix };
  }
  const [, v6, name, digits] = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(tcp ?? '') ?? [];
  const [host, port] = [v6 ?? name, Number(digits)];
  if (host === undefined || textProblem(host) || port < 1 || port > 65_535) throw new EndpointError(`${tcp} is no host and port.`);
  return { host, port, socketPath: null };
}
