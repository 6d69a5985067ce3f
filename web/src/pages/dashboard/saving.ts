import { useApolloClient } from '@apollo/client/react';
import { useCallback, useRef, useState } from 'react';
import { fromJsonText } from '../../graphql/exact.ts';
import { randomKey } from '../../graphql/key.ts';
import { type Failure, isUncertain, toFailure } from '../../graphql/link.ts';
import { type Content, changedFields, compact, type Draft, type Field, type Saved } from './content.ts';
import { DashboardQuery, PatchDashboard, type Place, savedOf } from './document.ts';

export type Outcome = { readonly saved: Saved } | { readonly conflict: true } | { readonly failure: Failure };

/** A draft that was sent, while it is unknown whether it was saved. */
interface Unanswered extends Draft {
  readonly idempotencyKey: string;
}

/** Saves only the changed fields of a dashboard, if it is still at the version that the draft began with. */
export function useSaving(place: Place) {
  const apollo = useApolloClient();
  const [isSaving, setSaving] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const unanswered = useRef<readonly Unanswered[]>([]);
  const { organizationId, projectId, id } = place;

  /** Whether a version is a draft that was saved here without an answer. */
  const isOwn = useCallback(
    (saved: Saved) => unanswered.current.some(({ base, mine }) => saved.version === base.version + 1 && isSame(saved, mine)),
    [],
  );

  const send = useCallback(
    async ({ base, mine }: Draft): Promise<Outcome> => {
      // The same content gets the same key, so that it is saved once.
      const before = unanswered.current.find((sent) => sent.base.version === base.version && isSame(sent.mine, mine));
      const idempotencyKey = before?.idempotencyKey ?? randomKey();
      const changes = Object.fromEntries(changedFields(base, mine).map((field) => [field, sentOf(mine, field)]));
      const input = { organizationId, projectId, id, expectedVersion: base.version, idempotencyKey, ...changes };
      try {
        const { data } = await apollo.mutate({ mutation: PatchDashboard, variables: { input } });
        const dashboard = data?.patchDashboard?.dashboard;
        if (!dashboard) throw new Error('The server has not said what it saved.');
        unanswered.current = [];
        return { saved: savedOf(dashboard) };
      } catch (error) {
        const refused = toFailure(error);
        if (!before && isUncertain(refused)) unanswered.current = [...unanswered.current, { base, mine, idempotencyKey }];
        if (refused.code === 'conflict' && typeof refused.context.version === 'number') return { conflict: true };
        setFailure(refused);
        return { failure: refused };
      }
    },
    [apollo, organizationId, projectId, id],
  );

  /** The server's version, if it is one that was saved here; null otherwise. */
  const readOwn = useCallback(async (): Promise<Saved | null> => {
    if (unanswered.current.length === 0) return null;
    const { data } = await apollo.query({ query: DashboardQuery, variables: { projectId, id }, fetchPolicy: 'network-only' });
    const theirs = data?.project?.dashboard && savedOf(data.project.dashboard);
    return theirs && isOwn(theirs) ? theirs : null;
  }, [apollo, projectId, id, isOwn]);

  const save = useCallback(
    async (draft: Draft): Promise<Outcome> => {
      setSaving(true);
      setFailure(null);
      try {
        const outcome = await send(draft);
        const base = 'conflict' in outcome ? await readOwn().catch(() => null) : null;
        return base ? await send({ base, mine: draft.mine }) : outcome;
      } finally {
        setSaving(false);
      }
    },
    [send, readOwn],
  );
  return { save, isOwn, isSaving, failure, forgive: () => setFailure(null) };
}

const isSame = (a: Content, b: Content) => changedFields(a, b).length === 0;

const sentOf = (mine: Draft['mine'], field: Field) => (field === 'widgets' ? fromJsonText(compact(mine.widgets)) : mine[field]);
