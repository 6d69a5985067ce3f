import { useLazyQuery } from '@apollo/client/react';
import { useCallback } from 'react';
import { graphql } from '../../graphql/graphql.ts';

const KnownQuery = graphql(`
  query KnownValues($id: ID!) {
    project(id: $id) {
      id
      instances(first: 100) {
        nodes {
          id
          region
          plan
        }
      }
    }
  }
`);

const unique = (values: readonly string[]) => [...new Set(values)].sort();

/** Suggested regions and plans: those of the first hundred instances, loaded when a filter gets the focus. */
export function useKnownValues(projectId: string) {
  const [run, { data }] = useLazyQuery(KnownQuery, { fetchPolicy: 'cache-first' });
  const read = useCallback(() => {
    run({ variables: { id: projectId } }).catch(() => {});
  }, [run, projectId]);
  const nodes = data?.project?.instances.nodes ?? [];
  return { read, regions: unique(nodes.map(({ region }) => region)), plans: unique(nodes.map(({ plan }) => plan)) };
}
