import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import type { Column } from '../../parts/column.ts';
import { Id } from '../../parts/id.tsx';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { oldestFirst } from './disks.tsx';

const VpcsQuery = graphql(`
  query Vpcs($id: ID!, $first: Int, $after: String) {
    project(id: $id) {
      id
      vpcs(first: $first, after: $after) {
        totalCount
        pageInfo {
          endCursor
          hasNextPage
        }
        nodes {
          id
          name
          cidr
          created
        }
      }
    }
  }
`);

type Vpc = NonNullable<ResultOf<typeof VpcsQuery>['project']>['vpcs']['nodes'][number];

const columns: readonly Column<Vpc>[] = [
  { name: 'name', title: 'Name', width: 'minmax(110px, 2fr)', cell: ({ name }) => <bdi>{name}</bdi> },
  { name: 'cidr', title: 'Addresses', width: 'minmax(110px, 1fr)', cell: ({ cidr }) => <code>{cidr}</code> },
  { name: 'id', title: 'Id', width: '128px', isMinor: true, cell: ({ id }) => <Id value={id} /> },
  { name: 'created', title: 'Created', width: '84px', sort: 'created', cell: ({ created }) => <Time value={created} /> },
];

/** The virtual private clouds. */
export function Vpcs({ projectId }: { projectId: string }) {
  const list = useEndless({
    document: VpcsQuery,
    variables: { id: projectId },
    parent: { __typename: 'Project', id: projectId },
    field: 'vpcs',
    pick: ({ project }) => project?.vpcs,
  });
  useUpdates(list);
  const empty = (
    <Empty title="There are no VPCs yet">
      <p>A virtual private cloud is a network of the project’s own, which only its instances are in.</p>
    </Empty>
  );
  return <DataTable label="VPCs" list={list} columns={columns} sort={oldestFirst} empty={empty} />;
}
