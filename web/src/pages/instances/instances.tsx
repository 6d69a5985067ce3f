import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { useAddress } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Column, Sort } from '../../parts/column.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Chips, FilterField, Filters, keepKnown, useSort } from '../../parts/filters.tsx';
import { formatNumber } from '../../parts/format.ts';
import { useListAddress } from '../../parts/listaddress.ts';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { toInstance } from '../instance/address.ts';
import { useKnownValues } from './values.ts';
import './instances.css';

const InstancesQuery = graphql(`
  query Instances($id: ID!, $filter: InstanceFilter, $orderBy: InstanceOrder, $first: Int, $after: String) {
    project(id: $id) {
      id
      instances(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
        totalCount
        pageInfo {
          endCursor
          hasNextPage
        }
        nodes {
          id
          name
          status
          plan
          region
          vcpu
          ramMb
          storageGb
          hypervisor
          throttled
          cancellationAt
          created
        }
      }
    }
  }
`);

type Row = NonNullable<ResultOf<typeof InstancesQuery>['project']>['instances']['nodes'][number];

const statuses = ['active', 'provisioning', 'rebuilding', 'resizing', 'stopped', 'suspended', 'error', 'deleted'] as const;
const attentions = ['suspended', 'throttled', 'without_hypervisor', 'cancellation_scheduled'] as const;
const fields = ['name', 'status', 'created'] as const;
const names = ['status', 'attention', 'name', 'region', 'plan'];
const initialSort: Sort<'created'> = { field: 'created', direction: 'asc' };

const toColumns = (projectId: string): readonly Column<Row>[] => [
  {
    name: 'name',
    title: 'Name',
    width: 'minmax(120px, 2fr)',
    sort: 'name',
    cell: ({ id, name }) => (
      <Link href={toInstance(projectId, id)} tabIndex={-1}>
        <bdi>{name}</bdi>
      </Link>
    ),
  },
  { name: 'status', title: 'Status', width: '104px', sort: 'status', cell: ({ status }) => <Badge value={status} /> },
  { name: 'marks', title: 'Marks', width: 'minmax(96px, 1fr)', isMinor: true, cell: (row) => <Marks {...row} /> },
  { name: 'plan', title: 'Plan', width: 'minmax(64px, 1fr)', isMinor: true, cell: ({ plan }) => plan },
  { name: 'region', title: 'Region', width: 'minmax(96px, 1fr)', isMinor: true, cell: ({ region }) => region },
  { name: 'vcpu', title: 'vCPU', width: '44px', isMinor: true, isNumber: true, cell: ({ vcpu }) => formatNumber(vcpu) },
  { name: 'ram', title: 'Memory', width: '72px', isMinor: true, isNumber: true, cell: ({ ramMb }) => `${formatNumber(ramMb / 1024)} GiB` },
  {
    name: 'storage',
    title: 'Storage',
    width: '72px',
    isMinor: true,
    isNumber: true,
    cell: ({ storageGb }) => `${formatNumber(storageGb)} GB`,
  },
  {
    name: 'hypervisor',
    title: 'Hypervisor',
    width: 'minmax(112px, 1fr)',
    isMinor: true,
    cell: ({ hypervisor }) => hypervisor ?? <span className="none">none</span>,
  },
  { name: 'created', title: 'Created', width: '84px', sort: 'created', cell: ({ created }) => <Time value={created} /> },
];

/** Badges for an instance's unusual properties. */
function Marks({ throttled, cancellationAt }: Pick<Row, 'throttled' | 'cancellationAt'>) {
  return (
    <span className="marks">
      {throttled && <Badge value="throttled" />}
      {cancellationAt && (
        <span className="badge" data-tone="info">
          <span>
            ends <Time value={cancellationAt} />
          </span>
        </span>
      )}
    </span>
  );
}

export default function Instances({ projectId }: { projectId: string }) {
  const { get, all } = useAddress();
  const [, navigate] = useLocation();
  const [sort, setSort] = useSort(fields, initialSort);
  const known = useKnownValues(projectId);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const filter = {
    statuses: keepKnown(all('status'), statuses),
    attention: keepKnown(all('attention'), attentions)[0],
    namePrefix: get('name') ?? undefined,
    region: get('region') ?? undefined,
    plan: get('plan') ?? undefined,
  };
  const list = useEndless({
    document: InstancesQuery,
    variables: { id: projectId, filter, orderBy: sort },
    parent: { __typename: 'Project', id: projectId },
    field: 'instances',
    pick: ({ project }) => project?.instances,
  });
  useUpdates(list);
  useListAddress(projectId, 'instances');
  const isFiltered = names.some((name) => get(name));
  return (
    <>
      <h1>Instances</h1>
      <Filters names={names}>
        <FilterField name="name" label="Name begins with" />
        <FilterField name="region" label="Region" suggestions={known.regions} onFocus={known.read} />
        <FilterField name="plan" label="Plan" suggestions={known.plans} onFocus={known.read} />
        <Chips label="Status" name="status" values={statuses} hasDots />
        <Chips label="Attention" name="attention" values={attentions} isSingle />
      </Filters>
      {selected.size > 0 && <Selection ids={[...selected]} onClear={() => setSelected(new Set())} />}
      <DataTable
        label="Instances"
        list={list}
        columns={toColumns(projectId)}
        sort={sort}
        onSort={setSort}
        selected={selected}
        onSelect={setSelected}
        onOpen={({ id }) => navigate(toInstance(projectId, id))}
        empty={isFiltered ? <NoneSuch /> : <NoneYet />}
      />
    </>
  );
}

/** The selection can only be copied: bulk operations are for programs. */
function Selection({ ids, onClear }: { ids: readonly string[]; onClear(): void }) {
  return (
    <div className="actions">
      <span>{formatNumber(ids.length)} selected</span>
      <CopyButton text={ids.join('\n')}>Copy their ids</CopyButton>
      <button type="button" className="button small" onClick={onClear}>
        Select none
      </button>
    </div>
  );
}

const NoneSuch = () => (
  <Empty title="No instance is like that">
    <p>Take a filter out, or look whether the name is spelled as it is: letters in capitals count, and it has to be its beginning.</p>
  </Empty>
);

const NoneYet = () => (
  <Empty title="There are no instances yet">
    <p>The virtual servers of this project are listed here, with what state they are in, as soon as the first one is ordered.</p>
  </Empty>
);
