import { useQuery } from '@apollo/client/react';
import { graphql, type ResultOf } from '../graphql/graphql.ts';
import { isUuid, toPage, toProject } from '../parts/address.ts';

const LookupQuery = graphql(`
  query Lookup($id: ID!) {
    node(id: $id) {
      __typename
      ... on Instance {
        id
        name
        project {
          id
        }
      }
      ... on Project {
        id
        name
      }
    }
  }
`);

interface Found {
  readonly address: string;
  readonly label: string;
}

/** Looks an id up; finds nothing for a text that is not an id. Instances and projects are found, of all that the viewer may see. */
export function useLookup(text: string) {
  const isId = isUuid(text);
  const { data, loading, error, refetch } = useQuery(LookupQuery, {
    variables: { id: text },
    skip: !isId,
    notifyOnNetworkStatusChange: true,
  });
  return { found: isId ? toFound(data?.node) : null, loading, error, refetch };
}

function toFound(node: ResultOf<typeof LookupQuery>['node'] | undefined): Found | null {
  if (node?.__typename === 'Instance') return { address: toPage(node.project.id, `instances/${node.id}`), label: `Instance: ${node.name}` };
  return node?.__typename === 'Project' ? { address: toProject(node.id), label: `Project: ${node.name}` } : null;
}
