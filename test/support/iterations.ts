/** Counts the iterations of the event loop until it is stopped. */
export function countIterations(): { readonly current: number; stop(): void } {
  let current = 0;
  const count = () => {
    current += 1;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  return {
    get current() {
      return current;
    },
    stop: () => clearImmediate(timer),
  };
}
