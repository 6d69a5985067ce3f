const waiting: Array<() => void> = [];

/**
 * Runs a small piece of bulk work when its turn comes, in the order of the calls: one piece each time that the event loop goes
 * around, whoever asked for it. Otherwise as many would follow each other as clients have asked for, before a connection with
 * a new request is looked at.
 */
export function runInTurn(piece: () => void): void {
  if (waiting.push(piece) === 1) setImmediate(runNext);
}

function runNext(): void {
  const piece = waiting.shift();
  // The next one waits for the event loop: an immediate that is set here runs the next time.
  if (waiting.length > 0) setImmediate(runNext);
  piece?.();
}
