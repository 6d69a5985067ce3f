import { useQuery } from '@apollo/client/react';
import { useState } from 'react';
import { graphql } from '../../graphql/graphql.ts';
import { Empty, Loading, Problem } from '../../parts/states.tsx';
import { useDesk } from '../../session/desk.tsx';
import { useEnded } from '../../session/ended.ts';
import { type ApiKey, isGood, useKeys } from './list.ts';
import { MakeKey } from './make.tsx';
import { RevokeDialog } from './revoke.tsx';
import { KeyTable } from './table.tsx';
import './keys.css';

const ViewerQuery = graphql(`
  query KeysViewer {
    viewer {
      id
    }
  }
`);

/** The viewer's API keys. */
export default function Keys() {
  const { session } = useDesk();
  return (
    <>
      <h1>Keys</h1>
      <p className="keys-lead">
        An API key is for a program: it may do what you may, in all your projects, but take no WebSocket ticket and manage no keys. Only a
        hash of it is kept.
      </p>
      {session.kind === 'key' ? <NeedsSession /> : <OwnKeys />}
    </>
  );
}

/** Shown in advance to a session by API key, as the server would reject it. */
function NeedsSession() {
  const { signOut } = useDesk();
  return (
    <section className="state problem" data-code="session_required" aria-labelledby="session-required">
      <h2 id="session-required">An API key may not do this</h2>
      <p>
        You are signed in with an API key. A key can neither list nor make nor revoke keys, so that one that was lost makes no others: the
        server answers <code>session_required</code>.
      </p>
      <p>Sign in as a person, with your account or a session token.</p>
      <button type="button" className="button" onClick={() => signOut()}>
        Sign in as a person
      </button>
    </section>
  );
}

function OwnKeys() {
  const { keys, failure, refresh } = useKeys();
  // The frame has read it.
  const viewer = useQuery(ViewerQuery, { fetchPolicy: 'cache-first' }).data?.viewer;
  useEnded(failure?.code);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const [isOpen, setOpen] = useState(false);
  const good = keys?.filter(isGood) ?? [];
  const ended = keys?.filter((key) => !isGood(key)) ?? [];
  return (
    <>
      {viewer && <MakeKey viewerId={viewer.id} onMade={refresh} />}
      <section className="keys" aria-labelledby="good-keys">
        <h2 id="good-keys">Keys that are good</h2>
        {failure && <Problem failure={failure} retry={refresh} />}
        {!keys && !failure && <Loading lines={3} />}
        {keys && good.length === 0 && (
          <Empty title="You have no key yet">
            <p>A key that you make is listed here, with its last use. Its text is shown once.</p>
          </Empty>
        )}
        {good.length > 0 && <KeyTable label="Keys that are good" keys={good} onRevoke={setRevoking} />}
      </section>
      {ended.length > 0 && (
        <details className="keys" onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>Revoked and ended ({ended.length})</summary>
          {isOpen && <KeyTable label="Revoked and ended keys" keys={ended} />}
        </details>
      )}
      {revoking && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} onRevoked={refresh} />}
    </>
  );
}
