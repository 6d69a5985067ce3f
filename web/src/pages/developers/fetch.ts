import { useCallback, useEffect, useState } from 'react';
import type { Failure } from '../../graphql/link.ts';

export interface GuideEntry {
  readonly name: string;
  readonly title: string;
}

export const useGuideList = () => useFetched<readonly GuideEntry[]>('/guides.json', (response) => response.json());
export const useGuideText = (name: string) => useFetched(`/guides/${encodeURIComponent(name)}.md`, (response) => response.text());

interface Fetched<Value> {
  readonly value: Value | null;
  readonly failure: Failure | null;
  retry(): void;
}

/** Fetches a file of the server without a credential. */
function useFetched<Value>(path: string, read: (response: Response) => Promise<Value>): Fetched<Value> {
  const [value, setValue] = useState<Value | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [attempt, setAttempt] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt fetches again; `read` does not change.
  useEffect(() => {
    const controller = new AbortController();
    const load = async () => {
      const response = await fetch(path, { signal: controller.signal });
      if (!response.ok) return setFailure(await toFailure(response));
      setValue(await read(response));
      setFailure(null);
    };
    load().catch((error: Error) => {
      if (!controller.signal.aborted) setFailure(failureOf('unreachable', error.message));
    });
    return () => controller.abort();
  }, [path, attempt]);
  const retry = useCallback(() => setAttempt((before) => before + 1), []);
  return { value, failure, retry };
}

const failureOf = (code: string, message: string, retryAfterMs: number | null = null): Failure => ({
  code,
  message,
  fields: {},
  context: {},
  retryAfterMs,
});

async function toFailure(response: Response): Promise<Failure> {
  const { code = 'internal_error', detail = `The server answered ${response.status}.` } = await response.json().catch(() => ({}));
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return failureOf(code, detail, Number.isFinite(seconds) ? seconds * 1000 : null);
}
