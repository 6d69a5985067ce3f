/**
 * Batches items that arrive together, so that a thousand replayed events cause one render. It is scheduled by a message port,
 * as browsers throttle timers in background tabs.
 */
export function inBatches<Item>(deliver: (items: readonly Item[]) => void): (item: Item) => void {
  let pending: Item[] = [];
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const items = pending;
    pending = [];
    deliver(items);
  };
  return (item) => {
    pending.push(item);
    if (pending.length === 1) port2.postMessage(null);
  };
}
