import { useApolloClient, useFragment } from '@apollo/client/react';
import { useCallback, useState } from 'react';
import { graphql, type ResultOf, type VariablesOf } from '../../graphql/graphql.ts';
import { randomKey } from '../../graphql/key.ts';
import { type Failure, toFailure } from '../../graphql/link.ts';
import { markRead, markReadThrough } from '../../live/intake.ts';
import { formatNumber } from '../../parts/format.ts';
import { useToast } from '../../parts/toast.tsx';
import { useDesk } from '../../session/desk.tsx';
import { type Filter, NotificationRow } from './row.ts';

const MarkReadMutation = graphql(`
  mutation MarkRead($input: MarkNotificationsReadInput!) {
    markNotificationsRead(input: $input) {
      marked
      unreadCount
      notifications {
        id
        read
      }
      project {
        id
        unreadNotificationCount
      }
    }
  }
`);

const UnreadQuery = graphql(`
  query UnreadNotifications($id: ID!, $filter: NotificationFilter, $after: String) {
    project(id: $id) {
      id
      notifications(filter: $filter, first: 100, after: $after) {
        nodes {
          id
          sequence
        }
        pageInfo {
          endCursor
          hasNextPage
        }
      }
    }
  }
`);

const MarkedProject = graphql(`
  fragment MarkedProject on Project {
    id
    unreadNotificationCount
    organization {
      id
    }
  }
`);

/** The server's limit of ids in one request. */
const MAX_IDS = 200;

/** One request, with the unread count that is expected after it. */
interface Step {
  readonly ids: readonly string[];
  /** Marks all up to this sequence number; null: only `ids`. */
  readonly through: number | null;
  readonly isAll?: boolean;
  readonly left: number;
}

export interface Marking {
  readonly unread: number;
  readonly isBusy: boolean;
  /** Why the last request failed. */
  readonly failure: Failure | null;
  forgetFailure(): void;
  /** Each resolves to whether it succeeded. */
  markThese(ids: readonly string[]): Promise<boolean>;
  /** Marks all up to a sequence number; `left` later ones stay unread. */
  markThrough(sequence: number, left: number): Promise<boolean>;
  /** Marks those that match a filter, up to a sequence number. */
  markFiltered(filter: Filter, sequence: number): Promise<boolean>;
  markAll(newest: number): Promise<boolean>;
}

/** Marks notifications as read, optimistically: the page is updated at once, and rolled back if the server rejects it. */
export function useMarking(projectId: string): Marking {
  const apollo = useApolloClient();
  const toast = useToast();
  const { signOut } = useDesk();
  const [busy, setBusy] = useState(0);
  const [failure, setFailure] = useState<Failure | null>(null);
  const { data } = useFragment({ fragment: MarkedProject, from: { __typename: 'Project', id: projectId } });
  const unread = data?.unreadNotificationCount ?? 0;
  const organizationId = data?.organization?.id ?? '';

  const step = useCallback(
    async ({ ids, through, isAll = false, left }: Step): Promise<number> => {
      const input = {
        organizationId,
        projectId,
        idempotencyKey: randomKey(),
        ...(ids.length > 0 && { notificationIds: [...ids] }),
        ...(through !== null && !isAll && { throughSequence: through }),
      };
      const expected = {
        __typename: 'MarkNotificationsReadPayload' as const,
        marked: 0,
        unreadCount: left,
        notifications: [],
        project: { __typename: 'Project' as const, id: projectId, unreadNotificationCount: left },
      };
      const { data } = await apollo.mutate({
        mutation: MarkReadMutation,
        variables: { input },
        optimisticResponse: { markNotificationsRead: expected } as never,
        update: (cache) => {
          markRead(cache, ids);
          if (through !== null) markReadThrough(cache, projectId, through);
        },
      });
      return data?.markNotificationsRead?.marked ?? 0;
    },
    [apollo, organizationId, projectId],
  );

  const run = useCallback(
    async (work: () => Promise<number>) => {
      setBusy((before) => before + 1);
      setFailure(null);
      try {
        const marked = await work();
        toast(marked === 0 ? 'They had been read.' : `${formatNumber(marked)} marked as read.`);
        return true;
      } catch (error) {
        const failure = toFailure(error);
        if (failure.code === 'not_authenticated') signOut('not_authenticated');
        else setFailure(failure);
        return false;
      } finally {
        setBusy((before) => before - 1);
      }
    },
    [toast, signOut],
  );

  const forgetFailure = useCallback(() => setFailure(null), []);

  const isUnread = (id: string) => {
    const row = apollo.cache.readFragment({ fragment: NotificationRow, from: { __typename: 'Notification', id } });
    return row?.read !== true;
  };

  return {
    unread,
    isBusy: busy > 0,
    failure,
    forgetFailure,
    markThese: (ids) =>
      run(async () => {
        const wanted = ids.filter(isUnread);
        const chunks = Array.from({ length: Math.ceil(wanted.length / MAX_IDS) }, (_, index) =>
          wanted.slice(index * MAX_IDS, (index + 1) * MAX_IDS),
        );
        let left = unread;
        const marks = chunks.map((chunk) => {
          left = Math.max(0, left - chunk.length);
          return step({ ids: chunk, through: null, left });
        });
        return sum(await Promise.all(marks));
      }),
    markThrough: (sequence, left) => run(() => step({ ids: [], through: sequence, left: Math.min(unread, left) })),
    markAll: (newest) => run(() => step({ ids: [], through: newest, isAll: true, left: 0 })),
    markFiltered: (filter, sequence) =>
      run(async () => {
        const variables: VariablesOf<typeof UnreadQuery> = { id: projectId, filter: { ...filter, unread: true }, after: null };
        let [marked, left] = [0, unread];
        do {
          const { data: page }: { data?: ResultOf<typeof UnreadQuery> } = await apollo.query({
            query: UnreadQuery,
            variables: { ...variables },
            fetchPolicy: 'no-cache',
          });
          const list = page?.project?.notifications;
          const ids = (list?.nodes ?? []).filter((one) => one.sequence <= sequence).map(({ id }) => id);
          left = Math.max(0, left - ids.length);
          if (ids.length > 0) marked += await step({ ids, through: null, left });
          variables.after = list?.pageInfo.hasNextPage ? list.pageInfo.endCursor : null;
        } while (variables.after !== null);
        return marked;
      }),
  };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
