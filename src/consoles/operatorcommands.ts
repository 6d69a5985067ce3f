import { ConsoleKind } from '../generated/prisma/enums.ts';
import { lengthProblem, textProblem } from '../kernel/text.ts';
import type { Database } from '../platform/database.ts';
import { isPort } from '../platform/host.ts';
import { OperatorError } from '../platform/operatorerror.ts';
import { readId } from '../platform/operatorinput.ts';
import type { Endpoint } from './endpoint.ts';

/** Sets the address of an instance's console; returns the message for the operator. Throws an OperatorError for bad input. */
export async function setEndpoint(
  database: Database,
  instance: string,
  { kind, tcp, unix }: { kind: string; tcp?: string; unix?: string },
): Promise<string> {
  const instanceId = readId(instance);
  const kinds = Object.values(ConsoleKind);
  const consoleKind = kinds.find((one) => one === kind);
  if (!consoleKind) throw new OperatorError(`${kind} is not a kind of console. Use one of: ${kinds.join(', ')}.`);
  const address = parseAddress(tcp, unix);
  await requireInstance(database, instanceId);
  const data = { kind: consoleKind, ...address };
  await database.prisma.consoleEndpoint.upsert({ where: { instanceId }, create: { instanceId, ...data }, update: data });
  return `The ${kind} console of the instance is ${unix ?? tcp}.`;
}

async function requireInstance(database: Database, id: string): Promise<void> {
  const instance = await database.prisma.instance.findUnique({ where: { id }, select: { id: true } });
  if (!instance) throw new OperatorError('There is no such instance.');
}

/** Removes the address of an instance's console; returns the message for the operator. Throws an OperatorError where it had none. */
export async function removeEndpoint(database: Database, instance: string): Promise<string> {
  const instanceId = readId(instance);
  await requireInstance(database, instanceId);
  const { count } = await database.prisma.consoleEndpoint.deleteMany({ where: { instanceId } });
  if (count === 0) throw new OperatorError('The instance has no console.');
  return 'The instance no longer has a console.';
}

/** The characters that the database allows in a host or a path. */
const MAX_LENGTH = 255;
const isUnusable = (text: string) => (textProblem(text) ?? lengthProblem(text, MAX_LENGTH)) !== null;

function parseAddress(tcp: string | undefined, unix: string | undefined): Omit<Endpoint, 'kind'> {
  if ((tcp === undefined) === (unix === undefined)) throw new OperatorError('Give either --tcp or --unix.');
  if (unix !== undefined) {
    if (!unix.startsWith('/') || isUnusable(unix))
      throw new OperatorError(`${unix} is not an absolute path of at most ${MAX_LENGTH} characters.`);
    return { host: null, port: null, socketPath: unix };
  }
  const [, ipv6, name, digits = ''] = /^(?:\[([^\]]+)\]|([^:\s]+)):(\d{1,5})$/.exec(tcp ?? '') ?? [];
  const host = ipv6 ?? name;
  if (host === undefined || isUnusable(host) || !isPort(digits)) throw new OperatorError(`${tcp} is not a host and port.`);
  return { host, port: Number(digits), socketPath: null };
}
