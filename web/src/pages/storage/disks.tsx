import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import type { Column, Sort } from '../../parts/column.ts';
import { useSort } from '../../parts/filters.tsx';
import { formatNumber } from '../../parts/format.ts';
import { Id } from '../../parts/id.tsx';
import { type Endless, useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { toInstance } from '../instance/address.ts';
import './storage.css';

/** The fields that a row shows, by kind. */
export const DiskFields = {
  volume: graphql(`
    fragment VolumeFields on Volume {
      id
      name
      sizeGb
      created
      instanceId
      instance {
        id
        name
      }
    }
  `),
  snapshot: graphql(`
    fragment SnapshotFields on Snapshot {
      id
      name
      sizeGb
      created
      instanceId
      instance {
        id
        name
      }
    }
  `),
  backup: graphql(`
    fragment BackupFields on Backup {
      id
      name
      sizeGb
      created
      instanceId
      instance {
        id
        name
      }
    }
  `),
};

const VolumesQuery = graphql(
  `
  query Volumes($id: ID!, $orderBy: VolumeOrder, $first: Int, $after: String) {
    project(id: $id) {
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
`,
  [DiskFields.volume],
);

const SnapshotsQuery = graphql(
  `
  query Snapshots($id: ID!, $first: Int, $after: String) {
    project(id: $id) {
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
`,
  [DiskFields.snapshot],
);

const BackupsQuery = graphql(
  `
  query Backups($id: ID!, $first: Int, $after: String) {
    project(id: $id) {
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
`,
  [DiskFields.backup],
);

/** A volume, a snapshot or a backup: all have the same fields here. */
export type Disk = ResultOf<typeof DiskFields.volume>;

export const diskSorts = ['name', 'created'] as const;
export const oldestFirst: Sort<'created'> = { field: 'created', direction: 'asc' };

/** `projectId` is null for the disks of one instance. */
const toColumns = (projectId: string | null, isSorted: boolean): readonly Column<Disk>[] => [
  {
    name: 'name',
    title: 'Name',
    width: 'minmax(120px, 2fr)',
    sort: isSorted ? 'name' : undefined,
    cell: ({ name }) => <bdi>{name}</bdi>,
  },
  { name: 'size', title: 'Size', width: '80px', isNumber: true, cell: ({ sizeGb }) => `${formatNumber(sizeGb)} GB` },
  ...(projectId
    ? [
        {
          name: 'instance',
          title: 'Instance',
          width: 'minmax(96px, 1fr)',
          cell: ({ instance, instanceId }: Disk) =>
            instance ? (
              <Link href={toInstance(projectId, instance.id)} tabIndex={-1}>
                <bdi>{instance.name}</bdi>
              </Link>
            ) : (
              <span className="none">{instanceId ? 'gone' : 'none'}</span>
            ),
        },
      ]
    : []),
  { name: 'id', title: 'Id', width: '128px', isMinor: true, cell: ({ id }) => <Id value={id} /> },
  {
    name: 'created',
    title: 'Created',
    width: '84px',
    sort: isSorted ? 'created' : undefined,
    cell: ({ created }) => <Time value={created} />,
  },
];

interface DisksProps {
  readonly label: string;
  readonly list: Endless<Disk>;
  readonly empty: ReactNode;
  /** Absent for the disks of one instance. */
  readonly projectId?: string;
  readonly sort?: Sort;
  onSort?(sort: Sort): void;
}

/** Disks of one kind as a table; Enter opens the disk's instance. */
export function Disks({ label, list, empty, projectId, sort, onSort }: DisksProps) {
  const [, navigate] = useLocation();
  const open = projectId ? ({ instance }: Disk) => instance && navigate(toInstance(projectId, instance.id)) : undefined;
  return (
    <DataTable
      label={label}
      list={list}
      columns={toColumns(projectId ?? null, onSort !== undefined)}
      sort={sort}
      onSort={onSort}
      onOpen={open}
      empty={empty}
    />
  );
}

export function Volumes({ projectId }: { projectId: string }) {
  const [sort, setSort] = useSort(diskSorts, oldestFirst);
  const list = useEndless({
    document: VolumesQuery,
    variables: { id: projectId, orderBy: sort },
    parent: { __typename: 'Project', id: projectId },
    field: 'volumes',
    pick: ({ project }) => project?.volumes,
  });
  useUpdates(list);
  const empty = (
    <Empty title="There are no volumes yet">
      <p>A volume is a disk beside the root disk of an instance, which can outlive it.</p>
    </Empty>
  );
  return <Disks label="Volumes" list={list} projectId={projectId} sort={sort} onSort={setSort} empty={empty} />;
}

export function Snapshots({ projectId }: { projectId: string }) {
  const list = useEndless({
    document: SnapshotsQuery,
    variables: { id: projectId },
    parent: { __typename: 'Project', id: projectId },
    field: 'snapshots',
    pick: ({ project }) => project?.snapshots,
  });
  useUpdates(list);
  const empty = (
    <Empty title="There are no snapshots yet">
      <p>A snapshot is the state of a disk at one moment, kept until it is deleted.</p>
    </Empty>
  );
  return <Disks label="Snapshots" list={list} projectId={projectId} sort={oldestFirst} empty={empty} />;
}

export function Backups({ projectId }: { projectId: string }) {
  const list = useEndless({
    document: BackupsQuery,
    variables: { id: projectId },
    parent: { __typename: 'Project', id: projectId },
    field: 'backups',
    pick: ({ project }) => project?.backups,
  });
  useUpdates(list);
  const empty = (
    <Empty title="There are no backups yet">
      <p>
        A backup is a copy of an instance, made every day where its daily backup is on. The page of an instance says whether that can be
        tried.
      </p>
    </Empty>
  );
  return <Disks label="Backups" list={list} projectId={projectId} sort={oldestFirst} empty={empty} />;
}
