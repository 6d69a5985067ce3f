import { useApolloClient } from '@apollo/client/react';
import { useCallback, useEffect, useState } from 'react';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { type Failure, toFailure } from '../../graphql/link.ts';

const KeysQuery = graphql(`
  query Keys($after: String) {
    viewer {
      id
      apiKeys(first: 100, after: $after) {
        nodes {
          id
          name
          hint
          created
          lastUsed
          expires
          revoked
        }
        pageInfo {
          endCursor
          hasNextPage
        }
      }
    }
  }
`);

export type ApiKey = NonNullable<ResultOf<typeof KeysQuery>['viewer']>['apiKeys']['nodes'][number];

export const isGood = ({ revoked, expires }: ApiKey) => !revoked && (!expires || Date.parse(expires) > Date.now());

/** All the viewer's keys, the newest first. All pages are loaded, as one page does not show which keys are still valid. */
export function useKeys(): { keys: readonly ApiKey[] | null; failure: Failure | null; refresh(): void } {
  const apollo = useApolloClient();
  const [keys, setKeys] = useState<readonly ApiKey[] | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [epoch, setEpoch] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each epoch reloads them.
  useEffect(() => {
    let isLeft = false;
    const readFrom = async (after: string | null): Promise<readonly ApiKey[]> => {
      const { data } = await apollo.query({ query: KeysQuery, variables: { after }, fetchPolicy: 'network-only' });
      const page = data?.viewer?.apiKeys;
      if (!page) return [];
      const { hasNextPage, endCursor } = page.pageInfo;
      return hasNextPage && !isLeft ? [...page.nodes, ...(await readFrom(endCursor))] : page.nodes;
    };
    readFrom(null).then(
      (read) => {
        if (isLeft) return;
        setKeys(read);
        setFailure(null);
      },
      (error: unknown) => !isLeft && setFailure(toFailure(error)),
    );
    return () => {
      isLeft = true;
    };
  }, [apollo, epoch]);
  const refresh = useCallback(() => setEpoch((before) => before + 1), []);
  return { keys, failure, refresh };
}
