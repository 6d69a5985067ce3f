import type { Crowd, Sending } from './crowd.ts';

/** What became of a request. */
export interface Outcome {
  readonly sending: Sending;
  /** When it was sent, by `performance.now()`. */
  readonly at: number;
  /** In milliseconds. */
  readonly took: number;
  /** 0: there was no answer. */
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The code of its fault, wherever it stands; undefined where there is none. */
  readonly code: string | undefined;
  /** The answer, or why there was none. */
  readonly text: string;
}

export interface Traffic {
  /** All that is over, in the order of its end. */
  readonly outcomes: Outcome[];
  /** Sends no more; resolves when every answer has come. */
  stop(): Promise<void>;
}

const TICK_MS = 5;

/** So many requests a second, whether they are answered or not. */
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

/** The first requests to a process take long: it compiles what they need. Sends each of them thirty times. */
export async function warmUp(crowds: readonly Crowd[], sendings: readonly Sending[]): Promise<void> {
  for (let round = 0; round < 30; round += 1) await Promise.all(crowds.map((crowd) => crowd.sendAll(sendings)));
}

/** An answer other than a good one, in a line. */
export function describeOutcome({ sending, status, code, text, took }: Outcome): string {
  return `${sending.method ?? 'GET'} ${sending.path}: ${status} ${code ?? text.slice(0, 200)} after ${Math.round(took)} ms`;
}

export function isGood({ status, code }: Outcome): boolean {
  return status >= 200 && status < 300 && code === undefined;
}

/** The value below which lies the share of them; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
