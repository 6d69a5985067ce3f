import { useLive } from '../live/live.tsx';
import { explainState } from '../live/words.ts';

const words = { idle: 'connecting', connecting: 'connecting', live: 'live', waiting: 'waiting', ended: 'offline' } as const;

/** The state of the feed as a dot and a word; the tooltip has the details. */
export function Connection() {
  const { state } = useLive();
  return (
    <span className="connection" data-state={words[state.name]} title={explainState(state).join(' ')} role="status">
      <i aria-hidden="true" />
      {words[state.name]}
    </span>
  );
}
