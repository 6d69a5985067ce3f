import { Socket } from 'node:net';

/**
 * A socket that coalesces the writes of one turn of the event loop into one packet: `pg` writes every message of a statement
 * by itself, and each packet would cost both sides a system call.
 */
export class CoalescingSocket extends Socket {
  readonly #send = () => {
    this.uncork();
  };

  override write(chunk: string | Uint8Array, ...rest: never[]): boolean {
    if (this.writableCorked === 0) {
      this.cork();
      process.nextTick(this.#send);
    }
    return super.write(chunk, ...rest);
  }
}
