const queue: Array<() => void> = [];

/**
 * Queues a small piece of bulk work and runs the pieces in order, one per iteration of the event loop, whoever queued them.
 * Without this, pieces for many clients would run back to back, before Node polls the connection of a new request.
 */
export function runInNextIteration(piece: () => void): void {
  if (queue.push(piece) === 1) setImmediate(runNext);
}

function runNext(): void {
  const piece = queue.shift();
  // An immediate that is set within an immediate runs in the next iteration.
  if (queue.length > 0) setImmediate(runNext);
  piece?.();
}
