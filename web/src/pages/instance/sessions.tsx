import { useEffect, useRef, useState } from 'react';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { useAddress } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Column } from '../../parts/column.ts';
import { endings, kinds } from '../../parts/consoles.ts';
import { Chips, Filters, keepKnown } from '../../parts/filters.tsx';
import { formatBytes, formatDuration } from '../../parts/format.ts';
import { type Endless, useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { EndSession } from './end-session.tsx';
import type { TabProps } from './query.ts';

const SessionsQuery = graphql(`
  query ConsoleSessions($id: ID!, $filter: ConsoleSessionFilter, $first: Int, $after: String) {
    project(id: $id) {
      id
      consoleSessions(filter: $filter, first: $first, after: $after) {
        totalCount
        pageInfo {
          endCursor
          hasNextPage
        }
        nodes {
          id
          kind
          state
          created
          ended
          endReason
          durationSeconds
          bytesIn
          bytesOut
          clientAddresses
          userEmail
          user {
            id
            name
          }
        }
      }
    }
  }
`);

type SessionRow = NonNullable<ResultOf<typeof SessionsQuery>['project']>['consoleSessions']['nodes'][number];

const states = ['running', 'over'] as const;
const UPDATE_MS = 10_000;

const toColumns = (onEnd: ((row: SessionRow) => void) | null): readonly Column<SessionRow>[] => [
  { name: 'state', title: 'State', width: '92px', cell: ({ state }) => <Badge value={state} /> },
  {
    name: 'who',
    title: 'Who',
    width: 'minmax(90px, 1fr)',
    cell: ({ user, userEmail }) => <bdi title={userEmail}>{user?.name || userEmail}</bdi>,
  },
  { name: 'kind', title: 'Kind', width: '52px', isMinor: true, cell: ({ kind }) => kinds[kind] },
  { name: 'created', title: 'Began', width: '84px', cell: ({ created }) => <Time value={created} /> },
  {
    name: 'duration',
    title: 'Lasted',
    width: '92px',
    isMinor: true,
    cell: ({ durationSeconds, state }) => formatDuration(durationSeconds) + (state === 'over' ? '' : ' …'),
  },
  { name: 'in', title: 'Typed', width: '72px', isMinor: true, isNumber: true, cell: ({ bytesIn }) => formatBytes(bytesIn) },
  { name: 'out', title: 'Shown', width: '72px', isMinor: true, isNumber: true, cell: ({ bytesOut }) => formatBytes(bytesOut) },
  {
    name: 'from',
    title: 'From',
    width: 'minmax(96px, 1fr)',
    isMinor: true,
    cell: ({ clientAddresses }) => <span title={clientAddresses.join(', ')}>{clientAddresses.at(-1)}</span>,
  },
  {
    name: 'end',
    title: 'End',
    width: 'minmax(72px, 2fr)',
    cell: (row) =>
      row.endReason ? (
        <span title={endings[row.endReason]}>{endings[row.endReason]}</span>
      ) : (
        onEnd && (
          <button type="button" className="button small danger" onClick={() => onEnd(row)}>
            End
          </button>
        )
      ),
  },
];

/** The console sessions: who, when, how long, and why they ended. */
export function ConsoleSessions({ project, instance }: TabProps) {
  const { all } = useAddress();
  const [ending, setEnding] = useState<SessionRow | null>(null);
  const state = keepKnown(all('state'), states)[0];
  const list = useEndless({
    document: SessionsQuery,
    variables: { id: project.id, filter: { instanceId: instance.id, running: state ? state === 'running' : undefined } },
    parent: { __typename: 'Project', id: project.id },
    field: 'consoleSessions',
    pick: ({ project }) => project?.consoleSessions,
  });
  useWhileRunning(list);
  return (
    <>
      <Filters names={['state']}>
        <Chips label="State" name="state" values={states} isSingle />
      </Filters>
      {project.role !== 'admin' && <p className="none">These are your own. Admins of the project see those of everybody.</p>}
      <DataTable
        label="Console sessions"
        list={list}
        columns={toColumns(project.role === 'viewer' ? null : setEnding)}
        empty={
          <Empty title={state ? 'No session is so' : 'Nobody has been at its console yet'}>
            <p>Each opening of the console is kept here: who, from where, when, how much. What was said is not kept.</p>
          </Empty>
        }
      />
      {ending && (
        <EndSession project={project} instance={instance} session={ending} onClose={() => setEnding(null)} onEnded={list.update} />
      )}
    </>
  );
}

/** Polls while a session is running: its byte counts grow, which the feed does not report. */
function useWhileRunning(list: Endless<SessionRow>) {
  const isRunning = Array.from({ length: Math.min(20, list.count) }, (_, index) => list.row(index)).some(
    (row) => row && row.state !== 'over',
  );
  const latest = useRef(list.update);
  latest.current = list.update;
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => latest.current(), UPDATE_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
}
