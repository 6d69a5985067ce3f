/**
 * Gathers what comes in one go and hands it over at once: a thousand events of a replay are one change of the page. A
 * message port wakes it, as timers are held back in a tab that nobody looks at.
 */
export function inBatches<Item>(take: (items: readonly Item[]) => void): (item: Item) => void {
  let waiting: Item[] = [];
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const items = waiting;
    waiting = [];
    take(items);
  };
  return (item) => {
    waiting.push(item);
    if (waiting.length === 1) port2.postMessage(null);
  };
}
