import { Link } from 'wouter';
import { Badge } from '../../parts/badge.tsx';
import type { Column } from '../../parts/column.ts';
import { formatDuration } from '../../parts/format.ts';
import { Time, useNow } from '../../parts/time.tsx';
import { toInstance } from '../instance/address.ts';
import type { TaskRow } from './task.ts';

/** How long a task took, or has been running so far. */
export function Duration({ status, started, finished }: Pick<TaskRow, 'status' | 'started' | 'finished'>) {
  const now = useNow();
  if (!started || (!finished && status !== 'running')) return <span className="none">–</span>;
  const end = finished ? new Date(finished).getTime() : Math.max(now, Date.now());
  const text = formatDuration((end - new Date(started).getTime()) / 1000);
  return finished ? text : `${text} so far`;
}

/** The instance of a task; a deleted one has only its id. */
export function TaskInstance({ projectId, task }: { projectId: string; task: Pick<TaskRow, 'instance' | 'instanceId'> }) {
  const { instance, instanceId } = task;
  if (instance) {
    return (
      <Link href={toInstance(projectId, instance.id)} tabIndex={-1}>
        <bdi>{instance.name}</bdi>
      </Link>
    );
  }
  return <span className="none">{instanceId ? 'gone' : 'of the project'}</span>;
}

/** `projectId` is null for the tasks of one instance. */
export const toTaskColumns = (projectId: string | null): readonly Column<TaskRow>[] => [
  { name: 'status', title: 'Status', width: '92px', sort: 'status', cell: ({ status }) => <Badge value={status} /> },
  { name: 'kind', title: 'Kind', width: 'minmax(110px, 1fr)', cell: ({ kind }) => kind },
  ...(projectId
    ? [
        {
          name: 'instance',
          title: 'Instance',
          width: 'minmax(88px, 1fr)',
          cell: (task: TaskRow) => <TaskInstance projectId={projectId} task={task} />,
        },
      ]
    : []),
  {
    name: 'created',
    title: 'Created',
    width: '84px',
    sort: 'created',
    isMinor: projectId !== null,
    cell: ({ created }) => <Time value={created} />,
  },
  {
    name: 'started',
    title: 'Started',
    width: '84px',
    isMinor: true,
    cell: ({ started }) => (started ? <Time value={started} /> : <span className="none">not yet</span>),
  },
  { name: 'duration', title: 'Duration', width: '144px', isMinor: true, cell: (task) => <Duration {...task} /> },
  {
    name: 'error',
    title: 'Error',
    width: 'minmax(140px, 2fr)',
    isMinor: true,
    cell: ({ error }) => error && <bdi title={error}>{error}</bdi>,
  },
];
