import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useAddress } from '../../parts/address.ts';
import { formatNumber } from '../../parts/format.ts';
import { useToast } from '../../parts/toast.tsx';
import { openUnsent } from '../../session/unsent.ts';
import { type Comparison, Conflict } from './conflict.tsx';
import { type Content, changedFields, type Draft, draftOf, problemOf, type Saved } from './content.ts';
import { type Dashboard, type Place, savedOf } from './document.ts';
import { Editing } from './form.tsx';
import { Leaving } from './leaving.tsx';
import { Manage } from './manage.tsx';
import { useSaving } from './saving.ts';

/** This tab's drafts by viewer and dashboard: they survive signing in again and navigation. */
const drafts = openUnsent<Draft>('drafts');

interface WorkbenchProps {
  readonly place: Place;
  readonly viewerId: string;
  readonly dashboard: Dashboard;
  readonly facts: ReactNode;
  refetch(): void;
}

/** A dashboard for those who may edit it: the draft, or a comparison with the server's version if that has changed too. */
export function Workbench({ place, viewerId, dashboard, facts, refetch }: WorkbenchProps) {
  const toast = useToast();
  const address = useAddress();
  const server = useMemo(() => savedOf(dashboard), [dashboard]);
  const { draft, write, begin, settle, forget, isDirty, isOlder } = useDraft(`${viewerId}/${place.id}`, server);
  const { save, isOwn, isSaving, failure, forgive } = useSaving(place);
  const isJson = problemOf(draft.mine.widgets) === null;
  const comparison = useRef<Comparison | null>(null);
  const isComparing = address.get('compare') !== null && isDirty && isOlder && isJson;
  const compare = (isOn: boolean) => {
    if (isOn !== (address.get('compare') !== null)) address.set({ compare: isOn ? '' : null });
  };

  const attempt = async (next: Draft) => {
    if (changedFields(next.base, next.mine).length === 0) {
      begin(next.base);
      compare(false);
      return toast('There was nothing left to save: what is there is what you chose.');
    }
    write(next);
    const outcome = await save(next);
    if ('saved' in outcome) {
      settle(outcome.saved, next.mine);
      compare(false);
      toast(`Saved as version ${formatNumber(outcome.saved.version)}.`);
    } else if ('conflict' in outcome) {
      refetch();
      compare(true);
    } else compare(false);
  };
  const discard = () => {
    forgive();
    begin(server);
  };
  return (
    <>
      <Leaving isDirty={isDirty} onLeave={forget} />
      {isComparing ? (
        <Conflict
          key={`${draft.base.version}`}
          draft={draft}
          theirs={server}
          kept={comparison}
          isSaving={isSaving}
          onSave={(base: Saved, mine: Content) => attempt({ base, mine })}
          onBack={() => compare(false)}
        />
      ) : (
        <>
          <h1>
            <bdi>{draft.mine.name || 'A dashboard without a name'}</bdi>
          </h1>
          {facts}
          {isDirty && isOlder && !isSaving && !isOwn(server) && (
            <NewVersionNote key={server.version} version={server.version} isJson={isJson} onCompare={() => compare(true)} />
          )}
          <Editing
            draft={draft}
            isDirty={isDirty}
            isSaving={isSaving}
            failure={failure}
            onChange={(changes) => write({ ...draft, mine: { ...draft.mine, ...changes } })}
            onSave={() => attempt(draft)}
            onDiscard={discard}
          />
          <Manage place={place} name={server.name} version={server.version} isDirty={isDirty} refetch={refetch} onGone={forget} />
        </>
      )}
    </>
  );
}

/** The viewer's draft. Without changes it follows the server's version. */
function useDraft(key: string, server: Saved) {
  const toast = useToast();
  const [draft, setDraft] = useState(() => drafts.get(key) ?? draftOf(server));
  const isDirty = useMemo(() => changedFields(draft.base, draft.mine).length > 0, [draft]);
  const isOlder = server.version > draft.base.version;
  useEffect(() => {
    if (isDirty) drafts.set(key, draft);
    else drafts.delete(key);
  }, [key, draft, isDirty]);
  useEffect(() => {
    if (isDirty || !isOlder) return;
    setDraft(draftOf(server));
    toast(`Version ${formatNumber(server.version)} has been saved elsewhere, and is shown now.`);
  }, [isDirty, isOlder, server, toast]);
  return {
    draft,
    isDirty,
    isOlder,
    write: setDraft,
    begin: (base: Saved) => setDraft(draftOf(base)),
    /** Rebases the draft on the saved version; what was typed since sending stays unsaved. */
    settle: (base: Saved, sent: Content) =>
      setDraft(({ mine }) => ({ base, mine: mine === sent ? { ...draftOf(base).mine, widgets: mine.widgets } : mine })),
    forget: () => {
      drafts.delete(key);
      setDraft(draftOf(server));
    },
  };
}

/** Tells that a newer version has been saved elsewhere, without interrupting the editing. */
function NewVersionNote({ version, isJson, onCompare }: { version: number; isJson: boolean; onCompare(): void }) {
  const [isDismissed, setDismissed] = useState(false);
  if (isDismissed) return null;
  return (
    <div className="note newer" role="status">
      <p>
        Version {formatNumber(version)} has been saved elsewhere while you were writing. What you wrote is still here.
        {!isJson && ' Once your widgets are JSON, both versions can be looked at.'}
      </p>
      <div className="actions">
        <button type="button" className="button" disabled={!isJson} onClick={onCompare}>
          Look at both
        </button>
        <button type="button" className="button" onClick={() => setDismissed(true)}>
          Mine stays for now
        </button>
      </div>
    </div>
  );
}
