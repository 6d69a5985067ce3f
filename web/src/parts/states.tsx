import { type ReactNode, useEffect, useState } from 'react';
import type { Failure } from '../graphql/link.ts';
import { formatWait } from './format.ts';

/** The empty state: what would be listed here, and how to create one. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A skeleton. CSS delays it, so that nothing flickers if loading takes less than 300 ms. */
export function Loading({ lines = 6 }: { lines?: number }) {
  return (
    <div className="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => 90 - ((index * 17) % 45)).map((share) => (
        <span key={share} style={{ inlineSize: `${share}%` }} />
      ))}
    </div>
  );
}

const titles: Readonly<Record<string, string>> = {
  not_found: 'There is nothing here that you may see',
  permission_denied: 'Your role does not allow this',
  session_required: 'An API key may not do this',
  rate_limited: 'Too many requests',
  service_unavailable: 'The database is away',
  credential_unavailable: 'The identity provider does not answer',
  unreachable: 'The server does not answer',
};
const advice: Readonly<Record<string, string>> = {
  not_found: 'It is gone, or it belongs to somebody else: the two look the same. Check the address, or choose another project.',
  permission_denied: 'Ask an admin of the project for another role.',
  session_required: 'Sign in as a person, not with a key.',
  rate_limited: 'The budget of this hour is spent.',
  service_unavailable: 'What you see is what was read last.',
  credential_unavailable: 'Your session is renewed once it is back.',
  unreachable: 'The network or the server is away.',
};
/** Errors of what is away, and will be back. */
const away = ['service_unavailable', 'credential_unavailable', 'unreachable'];
/** Transient errors, which are retried automatically. */
const passing = ['rate_limited', ...away];

/** An error with advice; a transient one is retried automatically, with a countdown, which a screen reader does not read out. */
export function Problem({ failure, retry }: { failure: Failure; retry?: () => void }) {
  const { code, message, retryAfterMs } = failure;
  return (
    <div className="state problem" data-code={code}>
      <div role="alert">
        <h2>{titles[code] ?? 'This did not work'}</h2>
        <p>{message}</p>
        {advice[code] && (
          <p>
            {advice[code]} {away.includes(code) && (retry ? 'It is tried again by itself.' : 'Try it again in a moment.')}
          </p>
        )}
      </div>
      {retry && passing.includes(code) && <Countdown key={`${retryAfterMs}`} ms={retryAfterMs ?? 5000} onEnd={retry} />}
      {retry && !passing.includes(code) && (
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

function Countdown({ ms, onEnd }: { ms: number; onEnd: () => void }) {
  const [left, setLeft] = useState(Math.max(1, Math.ceil(ms / 1000)));
  useEffect(() => {
    const timer = setInterval(() => setLeft((before) => before - 1), 1000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (left > 0) return;
    setLeft(Math.max(1, Math.ceil(ms / 1000)));
    onEnd();
  }, [left, ms, onEnd]);
  return (
    <p>
      Trying again in {formatWait(Math.max(0, left))}.{' '}
      <button type="button" className="button small" onClick={onEnd}>
        Try now
      </button>
    </p>
  );
}
