import { useMutation } from '@apollo/client/react';
import { graphql, type ResultOf } from '../graphql/graphql.ts';
import { randomKey } from '../graphql/key.ts';
import { toFailure } from '../graphql/link.ts';
import { useEnded } from '../session/ended.ts';
import { useMounted } from './mounted.ts';
import { useToast } from './toast.tsx';

const EndConsoleSession = graphql(`
  mutation EndConsoleSession($input: EndConsoleSessionInput!) {
    endConsoleSession(input: $input) {
      consoleSession {
        id
        kind
        state
        ended
        endReason
        durationSeconds
        bytesIn
        bytesOut
      }
    }
  }
`);

type Session = NonNullable<ResultOf<typeof EndConsoleSession>['endConsoleSession']>['consoleSession'];

interface EndOfSession {
  readonly projectId: string;
  readonly organizationId: string;
  readonly session: { readonly id: string; readonly userEmail: string };
}

/**
 * Ends a console session and shows a toast. `end` resolves to whether it succeeded; `error` has the reason if not, which is a toast
 * once whoever asked has been left.
 */
export function useEndSession() {
  const toast = useToast();
  const isMounted = useMounted();
  const [run, { loading, error }] = useMutation(EndConsoleSession);
  useEnded(error && toFailure(error).code);
  const end = async ({ projectId, organizationId, session: { id, userEmail } }: EndOfSession): Promise<boolean> => {
    const input = { organizationId, projectId, id, idempotencyKey: randomKey() };
    try {
      await run({ variables: { input } });
      toast(`The session of ${userEmail} is over.`);
      return true;
    } catch (error) {
      if (!isMounted()) toast(`The session of ${userEmail}: ${toFailure(error).message}`);
      return false;
    }
  };
  return { end, loading, error };
}

/** Why a session ended. */
export const endings: Readonly<Record<NonNullable<Session['endReason']>, string>> = {
  access_lost: 'its user lost the access, or the role member',
  console_closed: 'the console hung up',
  console_moved: 'the console is elsewhere now',
  console_unreachable: 'the console did not answer, or broke off',
  detached: 'nobody came back to it for a minute',
  ended: 'somebody ended it',
  idle: 'nothing passed for too long',
  instance_gone: 'the instance was deleted or moved',
  instance_not_running: 'the instance was stopped or suspended',
  lost: 'the server that carried it died',
  taken_over: 'another session of this console began',
};

export const kinds: Readonly<Record<Session['kind'], string>> = { serial: 'serial', vnc: 'screen' };

export const states: Readonly<Record<Session['state'], string>> = {
  attached: 'somebody is at it',
  detached: 'nobody is at it; its user may come back within a minute',
  over: 'over',
};
