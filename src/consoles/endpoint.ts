import { connect, type OnReadOpts, type Socket } from 'node:net';
import { ConsoleKind } from '../generated/prisma/enums.ts';
import { textProblem } from '../kernel/text.ts';
import { parseUuid } from '../kernel/uuid.ts';
import type { Database } from '../platform/database.ts';
import { OperatorError } from '../platform/failure.ts';

/** How long a console may take to accept a connection. */
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 30_000;

/** The address of an instance's console. It is set by an operator, never by a client. */
export interface Endpoint {
  readonly kind: ConsoleKind;
  readonly host: string | null;
  readonly port: number | null;
  readonly socketPath: string | null;
}

export function isSameEndpoint(one: Endpoint, other: Endpoint): boolean {
  return one.kind === other.kind && one.host === other.host && one.port === other.port && one.socketPath === other.socketPath;
}

/**
 * Starts to connect and returns the socket at once: writes are buffered until it is connected. The socket emits `error` when
 * the connection fails or times out. `onread.callback` owns the buffer that it is given; `writableHighWaterMark` is in bytes.
 */
export function connectEndpoint({ host, port, socketPath }: Endpoint, onread: OnReadOpts, writableHighWaterMark: number): Socket {
  const address = socketPath === null ? { host: host ?? '', port: port ?? 0 } : { path: socketPath };
  const options = { ...address, onread, writableHighWaterMark };
  const line = connect(options);
  line.setNoDelay(true);
  line.setKeepAlive(true, KEEP_ALIVE_MS);
  line.setTimeout(CONNECT_TIMEOUT_MS, () => line.destroy(new Error('the console does not answer')));
  line.once('connect', () => line.setTimeout(0));
  return line;
}

/** Sets the address of an instance's console; returns the message for the operator. Throws an OperatorError for bad input. */
export async function setEndpoint(
  database: Database,
  instance: string,
  { kind, tcp, unix }: { kind: string; tcp?: string; unix?: string },
): Promise<string> {
  const instanceId = parseInstanceId(instance);
  const kinds = Object.values(ConsoleKind);
  const consoleKind = kinds.find((one) => one === kind);
  if (!consoleKind) throw new OperatorError(`${kind} is no kind of console: one of ${kinds.join(', ')}.`);
  const address = parseAddress(tcp, unix);
  if (!(await database.instance.findUnique({ where: { id: instanceId }, select: { id: true } })))
    throw new OperatorError('There is no such instance.');
  const data = { kind: consoleKind, ...address };
  await database.consoleEndpoint.upsert({ where: { instanceId }, create: { instanceId, ...data }, update: data });
  return `The ${kind} console of the instance is ${unix ?? tcp}.`;
}

/** Removes the address of an instance's console; returns the message for the operator. Throws an OperatorError where it had none. */
export async function removeEndpoint(database: Database, instance: string): Promise<string> {
  const { count } = await database.consoleEndpoint.deleteMany({ where: { instanceId: parseInstanceId(instance) } });
  if (count === 0) throw new OperatorError('The instance has no console.');
  return 'The instance has no console any more.';
}

function parseInstanceId(text: string): string {
  const id = parseUuid(text);
  if (!id) throw new OperatorError(`${text} is no UUID.`);
  return id;
}

function parseAddress(tcp: string | undefined, unix: string | undefined): Omit<Endpoint, 'kind'> {
  if ((tcp === undefined) === (unix === undefined)) throw new OperatorError('Give either --tcp or --unix.');
  if (unix !== undefined) {
    if (!unix.startsWith('/') || textProblem(unix)) throw new OperatorError(`${unix} is no absolute path.`);
    return { host: null, port: null, socketPath: unix };
  }
  const [, ipv6, name, digits] = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(tcp ?? '') ?? [];
  const [host, port] = [ipv6 ?? name, Number(digits)];
  if (host === undefined || textProblem(host) || port < 1 || port > 65_535) throw new OperatorError(`${tcp} is no host and port.`);
  return { host, port, socketPath: null };
}
