import { useApolloClient } from '@apollo/client/react';
import { useCallback, useState } from 'react';
import { fromJsonText } from '../../graphql/exact.ts';
import { randomKey } from '../../graphql/key.ts';
import { type Failure, toFailure } from '../../graphql/link.ts';
import { changedFields, compact, type Draft, type Field, type Saved } from './content.ts';
import { PatchDashboard, type Place, savedOf } from './document.ts';

export type Outcome = { readonly saved: Saved } | { readonly conflict: true } | { readonly failure: Failure };

/** Saves only the changed fields of a dashboard, if it is still at the version that the draft began with. */
export function useSaving(place: Place) {
  const apollo = useApolloClient();
  const [isSaving, setSaving] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const { organizationId, projectId, id } = place;

  const save = useCallback(
    async ({ base, mine }: Draft): Promise<Outcome> => {
      setSaving(true);
      setFailure(null);
      const changes = Object.fromEntries(changedFields(base, mine).map((field) => [field, sentOf(mine, field)]));
      const input = { organizationId, projectId, id, expectedVersion: base.version, idempotencyKey: randomKey(), ...changes };
      try {
        const { data } = await apollo.mutate({ mutation: PatchDashboard, variables: { input } });
        const dashboard = data?.patchDashboard?.dashboard;
        if (!dashboard) throw new Error('The server has not said what it saved.');
        return { saved: savedOf(dashboard) };
      } catch (error) {
        const refused = toFailure(error);
        if (refused.code === 'conflict' && typeof refused.context.version === 'number') return { conflict: true };
        setFailure(refused);
        return { failure: refused };
      } finally {
        setSaving(false);
      }
    },
    [apollo, organizationId, projectId, id],
  );
  return { save, isSaving, failure, forgive: () => setFailure(null) };
}

const sentOf = (mine: Draft['mine'], field: Field) => (field === 'widgets' ? fromJsonText(compact(mine.widgets)) : mine[field]);
