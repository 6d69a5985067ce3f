import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import type { Column } from '../../parts/column.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { oldestFirst } from './disks.tsx';

const SshKeysQuery = graphql(`
  query SshKeys($id: ID!, $first: Int, $after: String) {
    project(id: $id) {
      id
      sshKeys(first: $first, after: $after) {
        totalCount
        pageInfo {
          endCursor
          hasNextPage
        }
        nodes {
          id
          name
          fingerprint
          publicKey
          created
        }
      }
    }
  }
`);

type SshKey = NonNullable<ResultOf<typeof SshKeysQuery>['project']>['sshKeys']['nodes'][number];

const columns: readonly Column<SshKey>[] = [
  { name: 'name', title: 'Name', width: 'minmax(110px, 1fr)', cell: ({ name }) => <bdi>{name}</bdi> },
  {
    name: 'fingerprint',
    title: 'Fingerprint',
    width: 'minmax(160px, 2fr)',
    isMinor: true,
    cell: ({ fingerprint }) => <code title={fingerprint}>{fingerprint}</code>,
  },
  {
    name: 'key',
    title: 'Public key',
    width: '92px',
    cell: ({ name, publicKey }) => <CopyButton text={publicKey} label={`Copy the public key ${name}`} />,
  },
  { name: 'created', title: 'Created', width: '84px', sort: 'created', cell: ({ created }) => <Time value={created} /> },
];

/** The SSH keys that new instances get. */
export function SshKeys({ projectId }: { projectId: string }) {
  const list = useEndless({
    document: SshKeysQuery,
    variables: { id: projectId },
    parent: { __typename: 'Project', id: projectId },
    field: 'sshKeys',
    pick: ({ project }) => project?.sshKeys,
  });
  useUpdates(list);
  const empty = (
    <Empty title="There are no SSH keys yet">
      <p>New instances of the project are given the keys that are listed here, so that their owners can sign in.</p>
    </Empty>
  );
  return <DataTable label="SSH keys" list={list} columns={columns} sort={oldestFirst} empty={empty} />;
}
