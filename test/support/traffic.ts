import type { Crowd, Sending } from './crowd.ts';

/** The outcome of a request. */
export interface Outcome {
  readonly sending: Sending;
  /** The time at which it was sent, by `performance.now()`. */
  readonly at: number;
  /** In milliseconds. */
  readonly took: number;
  /** 0 if there was no response. */
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The code of the fault in a v1 or GraphQL body; undefined if there is none. */
  readonly code: string | undefined;
  /** The body, or the reason why there was no response. */
  readonly text: string;
}

export interface Traffic {
  /** The finished requests, in the order of their end. */
  readonly outcomes: Outcome[];
  /** Stops sending; resolves when every request has ended. */
  stop(): Promise<void>;
}

const TICK_MS = 5;

/** Sends `perSecond` requests a second, whether or not they are answered (an open-loop load). */
export function drive(crowd: Crowd, perSecond: number, next: (index: number) => Sending): Traffic {
  const outcomes: Outcome[] = [];
  const underWay = new Set<Promise<unknown>>();
  const began = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    for (const due = ((performance.now() - began) / 1000) * perSecond; sent < due; sent += 1) {
      const asking = ask(crowd, next(sent)).then((outcome) => {
        outcomes.push(outcome);
        underWay.delete(asking);
      });
      underWay.add(asking);
    }
  }, TICK_MS);
  return {
    outcomes,
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
    },
  };
}

export async function ask(crowd: Crowd, sending: Sending): Promise<Outcome> {
  const at = performance.now();
  const { status, headers, text } = await crowd
    .send(sending)
    .catch((failure: NodeJS.ErrnoException) => ({ status: 0, headers: {}, text: failure.code ?? failure.message }));
  const took = performance.now() - at;
  return { sending, at, took, status, retryAfter: (headers as Record<string, string>)['retry-after'], code: readCode(text), text };
}

function readCode(text: string): string | undefined {
  try {
    const { code, errors } = JSON.parse(text);
    return code ?? errors?.[0]?.extensions?.code;
  } catch {
    return undefined;
  }
}

/** Sends each request thirty times, because the first requests to a process are slow while code is compiled. */
export async function warmUp(crowds: readonly Crowd[], sendings: readonly Sending[]): Promise<void> {
  for (let round = 0; round < 30; round += 1) await Promise.all(crowds.map((crowd) => crowd.sendAll(sendings)));
}

/** Describes an outcome in one line, for failure messages. */
export function describeOutcome({ sending, status, code, text, took }: Outcome): string {
  return `${sending.method ?? 'GET'} ${sending.path}: ${status} ${code ?? text.slice(0, 200)} after ${Math.round(took)} ms`;
}

export function isGood({ status, code }: Outcome): boolean {
  return status >= 200 && status < 300 && code === undefined;
}

/** The value below which `share` of the values lie; NaN for no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
