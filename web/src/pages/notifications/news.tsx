import { useEffect, useState } from 'react';
import { useLive } from '../../live/live.tsx';
import { explainState } from '../../live/words.ts';
import { useAddress } from '../../parts/address.ts';
import { formatNumber } from '../../parts/format.ts';
import type { News } from './arrivals.ts';
import { noFilter } from './filters.tsx';

/** Lines above the list about notifications that have arrived but are not shown. */
export function NewsLines({ news, onTop }: { news: News; onTop(): void }) {
  const { set } = useAddress();
  const { missed, hidden, isFull, gap } = news;
  const show = () => {
    onTop();
    news.readAnew();
  };
  return (
    <>
      {gap && <Gap from={gap.from} to={gap.to} onClose={news.forgetGap} />}
      <div className="news" aria-live="polite">
        <div>
          {missed > 0 && !isFull && (
            <button type="button" className="button small" onClick={show}>
              {formatNumber(missed)} new
            </button>
          )}
          {hidden > 0 && (
            <button type="button" className="button small" onClick={() => set(noFilter)}>
              {formatNumber(hidden)} new, hidden by the filter
            </button>
          )}
        </div>
      </div>
    </>
  );
}

function Gap({ from, to, onClose }: { from: number; to: number; onClose(): void }) {
  const numbers = from === to ? `Number ${formatNumber(from)}` : `Numbers ${formatNumber(from)} to ${formatNumber(to)}`;
  return (
    <p className="news-line" data-tone="warning" role="status">
      {numbers} could not be told: they were removed before this page could read them, or the log was set back. The list has been read anew.{' '}
      <button type="button" className="button small" onClick={onClose}>
        Close
      </button>
    </p>
  );
}

/** A warning while the list is not live; not shown during the first connection. */
export function NotLive() {
  const { state, reconnect } = useLive();
  const [wasBroken, setBroken] = useState(false);
  const isBroken = state.name === 'waiting' || state.name === 'ended';
  useEffect(() => {
    if (isBroken) setBroken(true);
    if (state.name === 'live') setBroken(false);
  }, [isBroken, state.name]);
  if (state.name === 'live' || !(isBroken || wasBroken)) return null;
  const [what, next] = explainState(state);
  return (
    <p className="news-line not-live" data-tone="warning">
      {/* The text behind the status has another time at each attempt, which a screen reader would read out. */}
      <span role="status">
        <strong>Not live.</strong> {what}
      </span>{' '}
      {next}{' '}
      <button type="button" className="button small" onClick={reconnect}>
        Connect now
      </button>
    </p>
  );
}
