import { expect, it } from 'vitest';
import { Source } from '../../src/graph/source.ts';
import { collectGarbage } from '../../src/platform/garbage.ts';
import { Delivery } from '../../src/transport/delivery/delivery.ts';
import type { EventRenderer } from '../../src/transport/delivery/renderer.ts';
import type { SocketConnection } from '../../src/transport/sockets/connection.ts';

class Events extends Source {
  readonly turnKey = 'somebody';
  #left = 1;
  released = 0;
  override release(): void {
    this.released += 1;
  }
  read(): object | null {
    this.#left -= 1;
    return this.isEnded || this.#left < 0 ? null : {};
  }
}

/** A connection whose peer reads nothing until `read` is called. */
function openConnection() {
  const written: unknown[] = [];
  let callbacks: Array<() => void> = [];
  const connection = {
    isOpen: true,
    hasPendingBytes: true,
    writeQueue: null,
    afterWriting: (callback: () => void) => void callbacks.push(callback),
    write: (frames: unknown) => written.push(frames) > 0,
  };
  const read = async () => {
    connection.hasPendingBytes = false;
    while (callbacks.length > 0) {
      const [now, later] = [callbacks, []];
      callbacks = later;
      for (const callback of now) callback();
      await new Promise(setImmediate);
    }
  };
  return { connection: connection as unknown as SocketConnection & typeof connection, written, read };
}

/** A delivery that waits in the queue, as its peer does not read. */
function deliver(connection: SocketConnection) {
  const renderer = { render: () => Buffer.from('{}'), lastTookMs: 0 } as unknown as EventRenderer;
  const envelope = { head: () => '', tail: '' };
  const source = new Events();
  const delivery = new Delivery(connection, source, renderer, { envelope, onEnd: null });
  delivery.onReadable();
  return { delivery, renderer, source };
}

it('an ended delivery and its renderer are collected while the peer does not read', async () => {
  const { connection } = openConnection();
  const start = () => {
    const { delivery, renderer } = deliver(connection);
    delivery.stop();
    return new WeakRef(renderer);
  };
  const kept = [start(), start(), start()];
  await new Promise(setImmediate);
  await collectGarbage();
  expect(kept.map((reference) => reference.deref())).toEqual([undefined, undefined, undefined]);
});

it('deliveries that wait behind ended ones are written once the peer reads', async () => {
  const { connection, written, read } = openConnection();
  deliver(connection).delivery.stop();
  await read();
  connection.hasPendingBytes = true;
  deliver(connection);
  deliver(connection).delivery.stop();
  deliver(connection);
  expect(written.length).toBe(0);
  await read();
  expect(written.length).toBe(2);
});

it('one that waits for its peer drops what it has fetched', () => {
  const { connection } = openConnection();
  expect(deliver(connection).source.released).toBe(1);
});
