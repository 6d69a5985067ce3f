import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ConcurrencyLimit } from '../../kernel/concurrencylimit.ts';
import { Fault } from '../../kernel/fault.ts';
import { type ClientAddresses, normalizeAddress } from './addresses.ts';
import { onceArrived } from './countedrequest.ts';
import { requestQueueOf } from './requestqueue.ts';
import { answerRaw } from './serverfaults.ts';

/** How many connections of one address are rejected with a response at the same time; any more are closed without one. */
const MAX_REJECTIONS = 50;

interface ConnectionLimitDependencies {
  readonly addresses: ClientAddresses;
  readonly maxPerAddress: number;
  readonly onRefused: () => void;
  /** Called once, at the first request that a proxy has forwarded which is not trusted. */
  readonly onUntrustedProxy: (address: string) => void;
}

/**
 * Limits the open connections of each client address; behind a trusted proxy, whose connections are not counted, its requests in
 * progress and its WebSockets.
 */
export class ConnectionLimit {
  readonly #open: ConcurrencyLimit;
  #hasUntrustedProxy = false;

  constructor(private readonly dependencies: ConnectionLimitDependencies) {
    this.#open = new ConcurrencyLimit(dependencies.maxPerAddress);
  }

  /** Counts a connection until it closes, unless it is a proxy's. Returns whether it is accepted; one that is not is answered and ended. */
  accept(socket: Socket, isProxied: boolean): boolean {
    if (isProxied) return true;
    const address = normalizeAddress(socket.remoteAddress ?? '');
    const isAccepted = this.#open.add(address);
    socket.once('close', () => this.#open.delete(address));
    if (isAccepted) return true;
    this.dependencies.onRefused();
    if (this.#open.count(address) > this.#open.max + MAX_REJECTIONS) socket.destroy();
    else {
      answerRaw(socket, tooMany());
      // Node would parse and keep in memory whatever the client sends. It has scheduled the first read, which must come before this.
      process.nextTick(() => socket.pause());
    }
    return false;
  }

  /**
   * Counts a proxied request or WebSocket until `source` closes and all of the request has arrived, as long as the proxy keeps a
   * connection for it; returns whether its client is within the limit.
   */
  countProxied(request: IncomingMessage, source: { once(event: 'close', listener: () => void): unknown }): boolean {
    if (!requestQueueOf(request.socket)?.isProxied) {
      this.#noteUntrustedProxy(request);
      return true;
    }
    const address = this.dependencies.addresses.of(request);
    source.once('close', () => onceArrived(request, () => this.#open.delete(address)));
    const isAccepted = this.#open.add(address);
    if (!isAccepted) this.dependencies.onRefused();
    return isAccepted;
  }

  #noteUntrustedProxy({ headers, socket }: IncomingMessage): void {
    if (this.#hasUntrustedProxy || headers['x-forwarded-for'] === undefined) return;
    this.#hasUntrustedProxy = true;
    this.dependencies.onUntrustedProxy(normalizeAddress(socket.remoteAddress ?? ''));
  }
}

export function tooMany(): Fault {
  return Fault.tryLater('too much is open');
}
