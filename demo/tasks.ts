import type { Prisma } from '../src/generated/prisma/client.ts';
import type { TaskStatus } from '../src/generated/prisma/enums.ts';
import { findInstance, fleet, foreignFleet } from './compute.ts';
import { demoId } from './identity.ts';
import { hoursBefore } from './time.ts';

interface DemoTask {
  readonly status: TaskStatus;
  readonly kind: string;
  /** The name of its instance. */
  readonly on: string;
  readonly hoursAgo: number;
  /** Set if it took longer than the usual three minutes. */
  readonly finishedHoursAgo?: number;
  readonly error?: string;
}

const unfinished: readonly DemoTask[] = [
  { status: 'pending', kind: 'instance.create', on: 'web-08', hoursAgo: 0.1 },
  { status: 'pending', kind: 'instance.create', on: 'worker-08', hoursAgo: 0.2 },
  { status: 'running', kind: 'instance.resize', on: 'api-05', hoursAgo: 0.15 },
  { status: 'running', kind: 'instance.rebuild', on: 'web-07', hoursAgo: 0.3 },
  // Stuck for more than an hour; the last one for more than the 24 hours that the recent figures cover.
  { status: 'pending', kind: 'snapshot.create', on: 'worker-07', hoursAgo: 3.5 },
  { status: 'running', kind: 'backup.create', on: 'db-04', hoursAgo: 2 },
  { status: 'running', kind: 'instance.migrate', on: 'worker-06', hoursAgo: 30 },
];

const ended: readonly DemoTask[] = [
  { status: 'failed', kind: 'instance.start', on: 'build-06', hoursAgo: 5.2, error: 'The hypervisor refused the domain: out of memory.' },
  { status: 'failed', kind: 'volume.attach', on: 'db-02', hoursAgo: 9.7, error: 'The volume is in use by another instance.' },
  { status: 'failed', kind: 'backup.create', on: 'mail-02', hoursAgo: 18.4, error: 'The backup storage did not answer within 300 s.' },
  // Created more than 24 hours ago, failed within the last 24 hours.
  {
    status: 'failed',
    kind: 'instance.migrate',
    on: 'cache-03',
    hoursAgo: 28,
    finishedHoursAgo: 16,
    error: 'The target host ran out of disk.',
  },
  { status: 'failed', kind: 'instance.reboot', on: 'web-03', hoursAgo: 60, error: 'The guest did not shut down in time.' },
  { status: 'failed', kind: 'snapshot.create', on: 'api-02', hoursAgo: 170, error: 'The snapshot quota of the project is used up.' },
  { status: 'failed', kind: 'instance.create', on: 'gpu-03', hoursAgo: 400, error: 'No host with a free GPU in us-east-1.' },
  { status: 'cancelled', kind: 'instance.resize', on: 'api-01', hoursAgo: 7.5 },
  { status: 'cancelled', kind: 'snapshot.delete', on: 'queue-02', hoursAgo: 90 },
];

const kinds = ['instance.reboot', 'backup.create', 'snapshot.create', 'volume.attach', 'instance.start', 'backup.create', 'instance.stop'];

/** Eighteen within the last 24 hours, and as many before. */
const succeeded: readonly DemoTask[] = Array.from({ length: 36 }, (_, index) => ({
  status: 'succeeded',
  kind: kinds[index % kinds.length] ?? '',
  on: fleet[(index * 5) % 40]?.name ?? '',
  hoursAgo: index < 18 ? 0.6 + index * 1.25 : 26 + (index - 18) * 19,
}));

/** Tasks in every status, oldest first: recent, stuck, failed in the last 24 hours and before, and old. */
export function taskRows(now: Date): Prisma.TaskCreateManyInput[] {
  const oldestFirst = [...unfinished, ...ended, ...succeeded].sort((a, b) => b.hoursAgo - a.hoursAgo);
  return [...oldestFirst.map((task, index) => taskRow(now, task, index)), ...foreignTaskRows(now)];
}

function taskRow(now: Date, task: DemoTask, index: number): Prisma.TaskCreateManyInput {
  const instance = findInstance(task.on);
  const isOpen = task.status === 'pending' || task.status === 'running';
  const hasStarted = task.status !== 'pending' && task.status !== 'cancelled';
  return {
    id: demoId(`task/${index + 1}`, index),
    projectId: instance.projectId,
    instanceId: instance.id,
    kind: task.kind,
    status: task.status,
    error: task.error ?? '',
    created: hoursBefore(now, task.hoursAgo),
    started: hasStarted ? hoursBefore(now, task.hoursAgo - 0.01) : null,
    finished: isOpen ? null : hoursBefore(now, task.finishedHoursAgo ?? task.hoursAgo - 0.05),
  };
}

function foreignTaskRows(now: Date): Prisma.TaskCreateManyInput[] {
  return foreignFleet.map((instance, index) => ({
    id: demoId(`task/${instance.name}`, index),
    projectId: instance.projectId,
    instanceId: instance.id,
    kind: 'instance.reboot',
    status: index === 0 ? 'failed' : 'succeeded',
    error: index === 0 ? 'The guest did not shut down in time.' : '',
    created: hoursBefore(now, 14 - index),
    started: hoursBefore(now, 13.99 - index),
    finished: hoursBefore(now, 13.9 - index),
  }));
}
