import { useMutation } from '@apollo/client/react';
import { Dialog, DialogDismiss, DialogHeading } from '@ariakit/react';
import { useRef } from 'react';
import { graphql } from '../../graphql/graphql.ts';
import { randomKey } from '../../graphql/key.ts';
import { toFailure } from '../../graphql/link.ts';
import { findPage } from '../../parts/focus.ts';
import { useMounted } from '../../parts/mounted.ts';
import { Problem } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { useToast } from '../../parts/toast.tsx';
import { useEnded } from '../../session/ended.ts';
import type { ApiKey } from './list.ts';

const RevokeApiKey = graphql(`
  mutation RevokeApiKey($input: RevokeApiKeyInput!) {
    revokeApiKey(input: $input) {
      apiKey {
        id
        revoked
      }
    }
  }
`);

interface RevokeDialogProps {
  readonly apiKey: ApiKey;
  onClose(): void;
  onRevoked(): void;
}

/** Asks for confirmation, with the key's name. */
export function RevokeDialog({ apiKey: { id, name, hint, lastUsed }, onClose, onRevoked }: RevokeDialogProps) {
  const [revoke, { loading, error }] = useMutation(RevokeApiKey);
  const failure = error ? toFailure(error) : null;
  useEnded(failure?.code);
  const toast = useToast();
  const isMounted = useMounted();
  /** Null: the opener. */
  const finalFocus = useRef<HTMLElement | null>(null);
  const key = useRef(randomKey());
  const confirm = async () => {
    if (loading) return;
    try {
      await revoke({ variables: { input: { id, idempotencyKey: key.current } } });
    } catch (error) {
      // An error is shown below, unless the question has been left.
      if (!isMounted()) toast(`The key ${name}: ${toFailure(error).message}`);
      return;
    }
    toast(`The key ${name} is revoked.`);
    onRevoked();
    // Meanwhile there may be the question about another key.
    if (!isMounted()) return;
    finalFocus.current = findPage();
    onClose();
  };
  return (
    <Dialog className="dialog" open onClose={onClose} finalFocus={finalFocus} backdrop={<div className="backdrop" />}>
      <DialogHeading>
        Revoke <bdi>{name}</bdi>?
      </DialogHeading>
      <p>
        Whatever uses the key <code>{hint}</code> is refused from its next request on. This cannot be taken back.
      </p>
      <p>Its last use: {lastUsed ? <Time value={lastUsed} /> : 'never'}.</p>
      {failure && <Problem failure={failure} />}
      <div className="actions revoke-actions">
        <button type="button" className="button danger" aria-disabled={loading} onClick={confirm}>
          Revoke it
        </button>
        <DialogDismiss className="button">Keep it</DialogDismiss>
      </div>
    </Dialog>
  );
}
