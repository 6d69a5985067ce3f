import { useLive } from '../live/live.tsx';
import { explainState } from '../live/words.ts';

const words = { idle: 'connecting', connecting: 'connecting', live: 'live', waiting: 'waiting', ended: 'offline' } as const;

/** What the feed is doing: a dot and a word, and on hover all that is known. */
export function Connection() {
  const { state } = useLive();
  return (
    <span className="connection" data-state={words[state.name]} title={explainState(state)} role="status">
      <i aria-hidden="true" />
      {words[state.name]}
    </span>
  );
}
