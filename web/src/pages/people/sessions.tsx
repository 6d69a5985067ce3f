import { useQuery } from '@apollo/client/react';
import { graphql } from '../../graphql/graphql.ts';
import { isUuid, useAddress } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Column } from '../../parts/column.ts';
import { endings, kinds } from '../../parts/consoles.ts';
import { useDropUnknown } from '../../parts/filters.tsx';
import { formatBytes, formatDuration } from '../../parts/format.ts';
import { type Endless, useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { InstanceFilter } from './instance-filter.tsx';
import { PersonFilter } from './person-filter.tsx';
import { type ConsoleSession, ConsoleSessionFields, SessionDialog } from './session.tsx';

const ConsoleSessionsQuery = graphql(
  `
    query ConsoleSessions($id: ID!, $filter: ConsoleSessionFilter, $first: Int, $after: String) {
      project(id: $id) {
        id
        consoleSessions(filter: $filter, first: $first, after: $after) {
          nodes {
            ...ConsoleSessionFields
          }
          pageInfo {
            endCursor
            hasNextPage
          }
          totalCount
        }
      }
    }
  `,
  [ConsoleSessionFields],
);

const RoleOfSessionsQuery = graphql(`
  query RoleOfSessions($id: ID!) {
    project(id: $id) {
      id
      role
    }
  }
`);

const columns: ReadonlyArray<Column<ConsoleSession>> = [
  { name: 'who', title: 'Who', width: 'minmax(7rem, 1.8fr)', cell: ({ userEmail }) => <bdi title={userEmail}>{userEmail}</bdi> },
  { name: 'instance', title: 'Instance', width: 'minmax(4.5rem, 0.8fr)', cell: ({ instanceName }) => <bdi>{instanceName}</bdi> },
  { name: 'state', title: 'State', width: 'minmax(6rem, 1.4fr)', cell: (session) => <State session={session} /> },
  { name: 'began', title: 'Began', width: '5.5rem', isMinor: true, cell: ({ created }) => <Time value={created} /> },
  { name: 'for', title: 'For', width: '5.5rem', isMinor: true, cell: ({ durationSeconds }) => formatDuration(durationSeconds) },
  { name: 'kind', title: 'Kind', width: '3.5rem', isMinor: true, cell: ({ kind }) => kinds[kind] },
  {
    name: 'from',
    title: 'From',
    width: 'minmax(7rem, 1fr)',
    isMinor: true,
    cell: ({ clientAddresses }) => <Addresses all={clientAddresses} />,
  },
  { name: 'bytes', title: 'Bytes to, from', width: '9rem', isMinor: true, cell: (session) => <Bytes session={session} /> },
];

function State({ session: { state, endReason } }: { session: ConsoleSession }) {
  if (!endReason) return <Badge value={state} />;
  return (
    <span title={endings[endReason]}>
      <Badge value={state} />, {endings[endReason]}
    </span>
  );
}

const Bytes = ({ session: { bytesIn, bytesOut } }: { session: ConsoleSession }) => (
  <>
    {formatBytes(bytesIn)}, {formatBytes(bytesOut)}
  </>
);

/** The latest address is the last one. */
function Addresses({ all }: { all: readonly string[] }) {
  return (
    <span title={all.join('\n')}>
      <code>{all.at(-1)}</code>
      {all.length > 1 && ` and ${all.length - 1} more`}
    </span>
  );
}

const running: Readonly<Record<string, boolean>> = { true: true, false: false };

/** A parameter of the URL that is an id; anything else is removed from it. */
function useIdParameter(name: string): string | undefined {
  useDropUnknown(name, isUuid);
  return useAddress().all(name).find(isUuid);
}

/** The console sessions: who, from where, when and how much; never their content. */
export function ConsoleSessions({ projectId }: { projectId: string }) {
  const address = useAddress();
  useDropUnknown('running', (value) => value in running);
  const [person, instance] = [useIdParameter('person'), useIdParameter('instance')];
  const [state, open] = ['running', 'open'].map((name) => address.get(name));
  const filter = { running: running[state ?? ''], userId: person, instanceId: instance };
  const list = useEndless({
    document: ConsoleSessionsQuery,
    variables: { id: projectId, filter },
    parent: { __typename: 'Project', id: projectId },
    field: 'consoleSessions',
    pick: ({ project }) => project?.consoleSessions,
  });
  const isFiltered = Boolean(state || person || instance);
  return (
    <>
      <Filters projectId={projectId} list={list} />
      <DataTable
        label="Console sessions"
        list={list}
        columns={columns}
        empty={
          isFiltered ? (
            <Empty title="No session is like this">
              <button type="button" className="button" onClick={() => address.set({ running: null, person: null, instance: null })}>
                Show all sessions
              </button>
            </Empty>
          ) : (
            <Empty title="Nobody has been at a console yet">
              <p>
                Each opening of a console is kept here: who, from where, when and how much. Never what was said. This opens one:{' '}
                <code>portico console &lt;instance&gt;</code>
              </p>
            </Empty>
          )
        }
        onOpen={({ id }) => address.set({ open: id })}
      />
      {open && (
        <SessionDialog
          key={open}
          projectId={projectId}
          id={open}
          onClose={() => address.set({ open: null }, { replace: true })}
          onEnded={list.refresh}
        />
      )}
    </>
  );
}

function Filters({ projectId, list }: { projectId: string; list: Endless<ConsoleSession> }) {
  const address = useAddress();
  const { data } = useQuery(RoleOfSessionsQuery, { variables: { id: projectId } });
  const [person, instance] = [useIdParameter('person'), useIdParameter('instance')];
  const state = address.get('running');
  const first = list.row(0);
  return (
    <div className="chips session-filters">
      {(
        [
          [null, 'All'],
          ['true', 'Running'],
          ['false', 'Over'],
        ] as const
      ).map(([value, title]) => (
        <button
          key={title}
          type="button"
          className="chip"
          aria-pressed={(state ?? null) === value}
          onClick={() => address.set({ running: value })}
        >
          {title}
        </button>
      ))}
      {data?.project?.role === 'admin' && (
        <PersonFilter
          projectId={projectId}
          value={person ?? null}
          email={first && first.userId === person ? first.userEmail : null}
          onChange={(id) => address.set({ person: id })}
        />
      )}
      <InstanceFilter
        projectId={projectId}
        value={instance ?? null}
        name={first && first.instanceId === instance ? first.instanceName : null}
        onChange={(id) => address.set({ instance: id })}
      />
      <button type="button" className="button small end" onClick={list.refresh}>
        Read again
      </button>
    </div>
  );
}
