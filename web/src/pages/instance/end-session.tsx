import { Dialog, DialogDismiss, DialogHeading } from '@ariakit/react';
import { useRef } from 'react';
import { toFailure } from '../../graphql/link.ts';
import { useEndSession } from '../../parts/consoles.ts';
import { findPage } from '../../parts/focus.ts';
import { useMounted } from '../../parts/mounted.ts';
import type { TabProps } from './query.ts';

interface EndSessionProps extends TabProps {
  readonly session: { readonly id: string; readonly userEmail: string; readonly user: { readonly name: string } | null };
  onClose(): void;
  onEnded(): void;
}

/** Asks for confirmation, with the user's name, before a session is ended. */
export function EndSession({ project, instance, session, onClose, onEnded }: EndSessionProps) {
  const isMounted = useMounted();
  const { end, loading, error } = useEndSession();
  /** Null: the opener. */
  const finalFocus = useRef<HTMLElement | null>(null);
  const who = session.user?.name || session.userEmail;
  const confirm = async () => {
    if (loading) return;
    // An error is shown below.
    if (!(await end({ projectId: project.id, organizationId: project.organizationId, session }))) return;
    onEnded();
    // Meanwhile there may be the question about another session.
    if (!isMounted()) return;
    finalFocus.current = findPage();
    onClose();
  };
  return (
    <Dialog open onClose={onClose} finalFocus={finalFocus} className="dialog" backdrop={<div className="backdrop" />}>
      <DialogHeading>
        End the session of <bdi>{who}</bdi>?
      </DialogHeading>
      <p>
        Whoever is at the console of <bdi>{instance.name}</bdi> in it is cut off within a second. What runs on the instance goes on.
      </p>
      {error && (
        <p role="alert" className="field-error">
          {toFailure(error).message}
        </p>
      )}
      <div className="actions">
        <button type="button" className="button danger" aria-disabled={loading} onClick={confirm}>
          End the session
        </button>
        <DialogDismiss className="button">Let it run</DialogDismiss>
      </div>
    </Dialog>
  );
}
