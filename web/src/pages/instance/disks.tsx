import { graphql } from '../../graphql/graphql.ts';
import { useSort } from '../../parts/filters.tsx';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { DiskFields, Disks, diskSorts, oldestFirst } from '../storage/disks.tsx';
import type { TabProps } from './query.ts';

const VolumesQuery = graphql(
  `
    query InstanceVolumes($projectId: ID!, $id: ID!, $orderBy: VolumeOrder, $first: Int, $after: String) {
      project(id: $projectId) {
        id
        instance(id: $id) {
          id
          volumes(orderBy: $orderBy, first: $first, after: $after) {
            totalCount
            pageInfo {
              endCursor
              hasNextPage
            }
            nodes {
              ...VolumeFields
            }
          }
        }
      }
    }
  `,
  [DiskFields.volume],
);

const SnapshotsQuery = graphql(
  `
    query InstanceSnapshots($projectId: ID!, $id: ID!, $first: Int, $after: String) {
      project(id: $projectId) {
        id
        instance(id: $id) {
          id
          snapshots(first: $first, after: $after) {
            totalCount
            pageInfo {
              endCursor
              hasNextPage
            }
            nodes {
              ...SnapshotFields
            }
          }
        }
      }
    }
  `,
  [DiskFields.snapshot],
);

const BackupsQuery = graphql(
  `
    query InstanceBackups($projectId: ID!, $id: ID!, $first: Int, $after: String) {
      project(id: $projectId) {
        id
        instance(id: $id) {
          id
          backups(first: $first, after: $after) {
            totalCount
            pageInfo {
              endCursor
              hasNextPage
            }
            nodes {
              ...BackupFields
            }
          }
        }
      }
    }
  `,
  [DiskFields.backup],
);

export function InstanceVolumes({ project, instance }: TabProps) {
  const [sort, setSort] = useSort(diskSorts, oldestFirst);
  const list = useEndless({
    document: VolumesQuery,
    variables: {
      projectId: project.id,
      id: instance.id,
      orderBy: sort,
    },
    parent: { __typename: 'Instance', id: instance.id },
    field: 'volumes',
    pick: ({ project }) => project?.instance?.volumes,
  });
  useUpdates(list);
  return <Disks label="Volumes of the instance" list={list} sort={sort} onSort={setSort} empty={<Empty title="It has no volumes" />} />;
}

export function InstanceSnapshots({ project, instance }: TabProps) {
  const list = useEndless({
    document: SnapshotsQuery,
    variables: { projectId: project.id, id: instance.id },
    parent: { __typename: 'Instance', id: instance.id },
    field: 'snapshots',
    pick: ({ project }) => project?.instance?.snapshots,
  });
  useUpdates(list);
  return <Disks label="Snapshots of the instance" list={list} empty={<Empty title="It has no snapshots" />} />;
}

export function InstanceBackups({ project, instance }: TabProps) {
  const list = useEndless({
    document: BackupsQuery,
    variables: { projectId: project.id, id: instance.id },
    parent: { __typename: 'Instance', id: instance.id },
    field: 'backups',
    pick: ({ project }) => project?.instance?.backups,
  });
  useUpdates(list);
  const empty = (
    <Empty title="It has no backups">
      <p>They are made every day where the daily backup is on.</p>
    </Empty>
  );
  return <Disks label="Backups of the instance" list={list} empty={empty} />;
}
