import { type ClientOptions, WebSocket as PackagedWebSocket } from 'ws';

// Node.js's own WebSocket, from version 22 on, cannot be ended where the peer has gone silent.
export const WebSocketImpl = PackagedWebSocket as unknown as typeof WebSocket;

export const takesHeaders: boolean = true;

/** The rate of the pings that ask what has arrived: four a second, in bursts of eight. The server accepts a bit more. */
const ASKING_MS = 250;
const MAX_BURST_MS = 2_000;

/** The server pings every 15 seconds. Whoever is silent for two intervals is asked, and given up at the fifth. */
const SILENCE_INTERVAL_MS = 10_000;

/**
 * Counts what its peer has received, as a peer answers a ping after everything that was sent before it, and ends where the peer has
 * gone silent.
 */
class CountingSocket extends PackagedWebSocket {
  #sent = 0;
  #received = 0;
  #isAsking = false;
  /** When the next ping would come at that rate. */
  #nextMs = 0;
  #silentIntervals = 0;

  constructor(...given: ConstructorParameters<typeof PackagedWebSocket>) {
    super(...given);
    const watch = setInterval(() => this.#countSilence(), SILENCE_INTERVAL_MS).unref();
    this.once('close', () => clearInterval(watch));
    for (const sign of ['message', 'ping', 'pong'])
      this.on(sign, () => {
        this.#silentIntervals = 0;
      });
  }

  #countSilence(): void {
    this.#silentIntervals += 1;
    if (this.#silentIntervals > 4) this.terminate();
    else if (this.#silentIntervals === 2 && this.readyState === PackagedWebSocket.OPEN) this.ping();
  }

  get unreceived(): number {
    return this.#sent - this.#received;
  }

  sendBytes(bytes: Uint8Array): void {
    this.send(bytes);
    this.#sent += bytes.length;
    this.#ask();
  }

  /** One ping at a time: many that have waited in the network would arrive at once. */
  #ask(): void {
    if (this.#isAsking || this.unreceived === 0) return;
    this.#isAsking = true;
    const position = this.#sent;
    const onPong = (answer: Buffer) => {
      if (String(answer) !== String(position)) return;
      this.off('pong', onPong);
      this.#received = position;
      const askAgain = () => {
        this.#isAsking = false;
        this.#ask();
      };
      const delayMs = this.#nextMs - performance.now() - MAX_BURST_MS;
      if (delayMs > 0) setTimeout(askAgain, delayMs).unref();
      else askAgain();
    };
    this.#nextMs = Math.max(this.#nextMs, performance.now()) + ASKING_MS;
    this.on('pong', onPong);
    this.ping(String(position));
  }
}

export function openSocket(url: string, protocols: string[], headers: Record<string, string> = {}): WebSocket {
  return new CountingSocket(url, protocols, { headers } satisfies ClientOptions) as unknown as WebSocket;
}

/** Sends bytes on a socket of `openSocket`. */
export const sendBytes = (socket: WebSocket, bytes: Uint8Array): void => (socket as unknown as CountingSocket).sendBytes(bytes);

/** How many of the bytes that were sent the peer is not known to have received. */
export const countUnreceived = (socket: WebSocket): number => (socket as unknown as CountingSocket).unreceived;

/** How long a peer may take to confirm that a socket is closed: a dead one would keep the process alive for half a minute. */
const CLOSING_MS = 1_000;

/** Closes a socket, or aborts its handshake. */
export function closeSocket(socket: WebSocket, code?: number, reason?: string): void {
  socket.close(code, reason);
  if (socket.readyState === WebSocketImpl.CLOSED) return;
  const timer = setTimeout(() => (socket as unknown as PackagedWebSocket).terminate(), CLOSING_MS);
  socket.addEventListener('close', () => clearTimeout(timer), { once: true });
}
