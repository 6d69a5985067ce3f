import { useApolloClient, useQuery } from '@apollo/client/react';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toPage } from '../../parts/address.ts';
import type { Column, Sort } from '../../parts/column.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { useSort } from '../../parts/filters.tsx';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useFollowing } from '../dashboard/following.ts';
import { Make, unsent } from './make.tsx';
import './dashboards.css';

const DashboardsQuery = graphql(`
  query Dashboards($projectId: ID!, $first: Int!, $after: String, $orderBy: DashboardOrder) {
    project(id: $projectId) {
      id
      dashboards(first: $first, after: $after, orderBy: $orderBy) {
        totalCount
        nodes {
          id
          name
          isDefault
          isPublic
          created
          modified
          createdBy {
            id
            name
          }
        }
        pageInfo {
          endCursor
          hasNextPage
        }
      }
    }
  }
`);

const RoleQuery = graphql(`
  query DashboardsRole($projectId: ID!) {
    viewer {
      id
    }
    project(id: $projectId) {
      id
      role
      organization {
        id
      }
    }
  }
`);

type Row = NonNullable<ResultOf<typeof DashboardsQuery>['project']>['dashboards']['nodes'][number];

const sorts = ['name', 'created'] as const;
const oldestFirst: Sort<'created'> = { field: 'created', direction: 'asc' };

/** The dashboards of a project that the viewer may see. */
export default function Dashboards({ projectId }: { projectId: string }) {
  const apollo = useApolloClient();
  const [, navigate] = useLocation();
  const [sort, setSort] = useSort(sorts, oldestFirst);
  /** Null until somebody opens or closes the dialog. */
  const [isMaking, setMaking] = useState<boolean | null>(null);
  const list = useEndless({
    document: DashboardsQuery,
    variables: { projectId, orderBy: sort },
    parent: { __typename: 'Project', id: projectId },
    field: 'dashboards',
    pick: ({ project }) => project?.dashboards,
  });
  const { data } = useQuery(RoleQuery, { variables: { projectId } });
  const project = data?.project;
  const draftKey = `${data?.viewer?.id}/${projectId}`;
  const mayMake = project?.role === 'admin' || project?.role === 'member';
  const reread = () => {
    apollo.refetchQueries({ include: [DashboardsQuery] }).catch(() => {});
  };
  useFollowing(reread);
  const make = (
    <button type="button" className="button primary" onClick={() => setMaking(true)}>
      Make a dashboard
    </button>
  );
  return (
    <>
      <h1>Dashboards</h1>
      <div className="actions">
        {mayMake && make}
        {project?.role === 'viewer' && <span>Your role “viewer” reads dashboards. Members make them.</span>}
      </div>
      <DataTable
        label="Dashboards"
        list={list}
        columns={columnsOf(projectId)}
        sort={sort}
        onSort={setSort}
        onOpen={({ id }) => navigate(toPage(projectId, `dashboards/${id}`))}
        empty={<Nothing organizationId={project?.organization.id} projectId={projectId} mayMake={mayMake} />}
      />
      {project && (
        <Make
          draftKey={draftKey}
          organizationId={project.organization.id}
          projectId={projectId}
          isOpen={isMaking ?? unsent.has(draftKey)}
          close={() => setMaking(false)}
          onMadeLate={reread}
        />
      )}
    </>
  );
}

const columnsOf = (projectId: string): readonly Column<Row>[] => [
  {
    name: 'name',
    title: 'Name',
    width: 'minmax(0, 3fr)',
    sort: 'name',
    cell: ({ id, name, isDefault }) => (
      <>
        <Link href={toPage(projectId, `dashboards/${id}`)}>
          <bdi>{name}</bdi>
        </Link>
        {isDefault && ' '}
        {isDefault && <span className="mark-default">default</span>}
      </>
    ),
  },
  { name: 'public', title: 'Public', width: '4rem', cell: ({ isPublic }) => (isPublic ? 'public' : 'no') },
  {
    name: 'by',
    title: 'Made by',
    width: 'minmax(0, 1.5fr)',
    isMinor: true,
    cell: ({ createdBy }) => <bdi>{createdBy?.name ?? 'somebody who has left'}</bdi>,
  },
  { name: 'created', title: 'Made', width: '7rem', sort: 'created', cell: ({ created }) => <Time value={created} /> },
  { name: 'modified', title: 'Saved', width: '7rem', isMinor: true, cell: ({ modified }) => <Time value={modified} /> },
];

interface NothingProps {
  readonly organizationId: string | undefined;
  readonly projectId: string;
  readonly mayMake: boolean;
}

function Nothing({ organizationId, projectId, mayMake }: NothingProps) {
  const address = `${location.origin}/v1/organizations/${organizationId}/projects/${projectId}/monitoring/dashboards`;
  const command = [
    'curl -sS -X POST -H "Authorization: Bearer $KEY" \\',
    '  -H "Content-Type: application/json" -d \'{"name":"Databases"}\' \\',
    `  ${address}`,
  ].join('\n');
  return (
    <Empty title="No dashboards yet">
      <p>Here stand the project’s dashboards: what each shows as JSON, which one opens first, and who sees it.</p>
      {mayMake ? (
        <>
          <p>Make one above, or by a command, with a key of yours as KEY:</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling text must be reachable by keyboard too. */}
          <pre className="command" tabIndex={0}>
            {command}
          </pre>
          <CopyButton text={command} />
        </>
      ) : (
        <p>There may be some that are not public. Members of the project make new ones.</p>
      )}
    </Empty>
  );
}
