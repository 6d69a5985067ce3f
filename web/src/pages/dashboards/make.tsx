import { useApolloClient } from '@apollo/client/react';
import { Dialog } from '@ariakit/react';
import { type FormEvent, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { graphql } from '../../graphql/graphql.ts';
import { randomKey } from '../../graphql/key.ts';
import { type Failure, isUncertain, toFailure } from '../../graphql/link.ts';
import { toPage } from '../../parts/address.ts';
import { useMounted } from '../../parts/mounted.ts';
import { useToast } from '../../parts/toast.tsx';
import { openUnsent } from '../../session/unsent.ts';
import { Flags } from '../dashboard/form.tsx';
import { FieldErrors, Refusal } from '../dashboard/refusal.tsx';
import '../dashboard/dashboard.css';

const CreateDashboard = graphql(`
  mutation CreateDashboard($input: CreateDashboardInput!) {
    createDashboard(input: $input) {
      dashboard {
        id
        name
      }
    }
  }
`);

type Content = typeof nothing;

/** This tab's unsent dashboards by viewer and project: they survive signing in again. Closing the dialog discards one. */
export const unsent = openUnsent<Content>('dashboards');

interface MakeProps {
  /** The key of the unsent content. */
  readonly draftKey: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly isOpen: boolean;
  close(): void;
  /** A dashboard has been made after the dialog was closed. */
  onMadeLate(): void;
}

/** Creates a dashboard without widgets, and opens it. */
export function Make({ isOpen, close, ...rest }: MakeProps) {
  const discard = () => {
    unsent.delete(rest.draftKey);
    close();
  };
  return (
    <Dialog
      open={isOpen}
      onClose={discard}
      className="dialog"
      aria-labelledby="making"
      backdrop={<div className="backdrop" />}
      unmountOnHide
    >
      <h2 id="making">Make a dashboard</h2>
      <MakeForm {...rest} close={discard} />
    </Dialog>
  );
}

const nothing = { name: '', description: '', isDefault: false, isPublic: false };

function MakeForm({ draftKey, organizationId, projectId, close, onMadeLate }: Omit<MakeProps, 'isOpen'>) {
  const apollo = useApolloClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const isMounted = useMounted();
  const [content, setContent] = useState(() => unsent.get(draftKey) ?? nothing);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isBusy, setBusy] = useState(false);
  // The idempotency key: sending the same dashboard again after a lost response creates it once.
  const key = useRef(randomKey());
  const change = (changes: Partial<Content>) => {
    key.current = randomKey();
    const next = { ...content, ...changes };
    unsent.set(draftKey, next);
    setContent(next);
  };
  const make = async (event: FormEvent) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setFailure(null);
    try {
      const input = { organizationId, projectId, idempotencyKey: key.current, ...content };
      const { data } = await apollo.mutate({ mutation: CreateDashboard, variables: { input } });
      // Whoever has closed the dialog may be writing another one already.
      if (isMounted() || unsent.get(draftKey) === content) unsent.delete(draftKey);
      if (isMounted()) return navigate(toPage(projectId, `dashboards/${data?.createDashboard?.dashboard.id}`));
      toast(`“${content.name}” is made.`);
      onMadeLate();
    } catch (error) {
      const refused = toFailure(error);
      if (!isUncertain(refused)) key.current = randomKey();
      setFailure(refused);
      setBusy(false);
    }
  };
  const fields = failure?.fields ?? {};
  return (
    <form onSubmit={make}>
      <div className="field">
        <label htmlFor="make-name">Name</label>
        <input
          id="make-name"
          className="input"
          value={content.name}
          aria-invalid={Boolean(fields.name)}
          aria-describedby="make-name-error"
          onChange={(event) => change({ name: event.target.value })}
        />
        <FieldErrors id="make-name-error" messages={fields.name} />
      </div>
      <div className="field">
        <label htmlFor="make-description">Description</label>
        <textarea
          id="make-description"
          className="input"
          rows={2}
          value={content.description}
          aria-invalid={Boolean(fields.description)}
          aria-describedby="make-description-error"
          onChange={(event) => change({ description: event.target.value })}
        />
        <FieldErrors id="make-description-error" messages={fields.description} />
      </div>
      <Flags content={content} onChange={change} />
      <Refusal failure={failure} shown={Object.keys(nothing)} />
      <div className="actions">
        <button type="submit" className="button primary" aria-disabled={isBusy}>
          {isBusy ? 'Making …' : 'Make it'}
        </button>
        <button type="button" className="button" onClick={close}>
          Cancel
        </button>
      </div>
    </form>
  );
}
