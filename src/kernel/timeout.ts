/** The promise's result, or an Error after `ms`. The immediate lets a process that was busy read what has arrived. */
export function withTimeout<Result>(promise: Promise<Result>, ms: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error(`no answer within ${ms} ms`))), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Whether a promise is pending after `ms`. */
export function isPendingAfter(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const isSettled = () => false;
  return withTimeout(promise.then(isSettled, isSettled), ms).catch(() => true);
}
