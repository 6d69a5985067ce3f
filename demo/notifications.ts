import type { Prisma } from '../src/generated/prisma/client.ts';
import type { Severity } from '../src/generated/prisma/enums.ts';
import { type DemoInstance, fleet, foreignFleet } from './compute.ts';
import { demoId } from './identity.ts';
import { foreignProject, project } from './people.ts';
import { hoursBefore } from './time.ts';

const COUNT = 150;
const FOREIGN_COUNT = 7;
const TWO_WEEKS_HOURS = 14 * 24;

/** The notifications of the main project, oldest first. */
export const notificationIds: readonly string[] = Array.from({ length: COUNT }, (_, index) => demoId(`notification/${index + 1}`, index));

/** The owner has read everything up to this sequence. */
export const ownerReadThrough = 100;

/** The member has read only these. The first is not among them, so that the watermark stays at 0. */
export const memberReads: readonly string[] = [5, 77, 120, 148].flatMap((sequence) => notificationIds[sequence - 1] ?? []);

/** A template for one kind of event; `turn` is a counter that varies the figures. */
interface Story {
  readonly kind: string;
  readonly severity: Severity;
  readonly resourceType: string;
  /** Selects instances whose state is consistent with the event. */
  readonly fits?: (instance: DemoInstance) => boolean;
  tell(
    instance: DemoInstance,
    turn: number,
  ): {
    readonly title: string;
    readonly body: string;
    readonly data: Prisma.InputJsonObject;
    /** Set if the event is not about the instance. */
    readonly resourceId?: string | null;
  };
}

const isActive = ({ status }: DemoInstance) => status === 'active';
const isThere = ({ status, placed }: DemoInstance) => status !== 'deleted' && placed;

const stories: readonly Story[] = [
  {
    kind: 'backup.completed',
    severity: 'info',
    resourceType: 'instance',
    tell: ({ name }, turn) => ({
      title: `Backup of ${name} completed`,
      body: `The nightly backup took ${3 + (turn % 9)} minutes.`,
      data: { size_gb: 30 + (turn % 60), duration_seconds: 180 + (turn % 9) * 60, incremental: turn % 4 !== 0 },
    }),
  },
  {
    kind: 'instance.started',
    severity: 'info',
    resourceType: 'instance',
    fits: isActive,
    tell: ({ name, hypervisor }) => ({ title: `${name} was started`, body: '', data: { hypervisor } }),
  },
  {
    kind: 'instance.throttled',
    severity: 'warning',
    resourceType: 'instance',
    fits: (instance) => instance.throttled && isThere(instance),
    tell: ({ name }, turn) => ({
      title: `${name} is throttled`,
      body: 'The CPU credits are used up. They refill while the load is low.',
      data: { metric: { name: 'cpu.steal', value: 0.2 + (turn % 7) / 10, window_seconds: 300 } },
    }),
  },
  {
    kind: 'backup.failed',
    severity: 'critical',
    resourceType: 'instance',
    tell: ({ name }) => ({
      title: `Backup of ${name} failed`,
      body: 'The backup storage did not answer in time. It is tried again within the hour.',
      data: { attempt: 1, error: { code: 'storage_timeout', after_seconds: 300 } },
    }),
  },
  {
    kind: 'billing.invoice_due',
    severity: 'warning',
    resourceType: 'invoice',
    tell: (_, turn) => ({
      title: `Invoice ${2600 + turn} is due in three days`,
      body: 'Pay it to keep your services running.',
      data: { invoice: { number: 2600 + turn, amount: `${120 + turn}.50`, currency: 'EUR' }, reminders: 1 },
      resourceId: String(2600 + turn),
    }),
  },
  {
    kind: 'instance.resized',
    severity: 'info',
    resourceType: 'instance',
    fits: isActive,
    tell: ({ name, plan }) => ({ title: `${name} was resized to ${plan}`, body: '', data: { plan: { from: 'vps-xs', to: plan } } }),
  },
  {
    kind: 'instance.suspended',
    severity: 'critical',
    resourceType: 'instance',
    fits: ({ status }) => status === 'suspended',
    tell: ({ name }) => ({
      title: `${name} is suspended`,
      body: 'Its service is overdue. It resumes as soon as the invoice is paid.',
      data: { reason: 'payment_overdue', overdue_days: 14 },
    }),
  },
  {
    kind: 'snapshot.created',
    severity: 'info',
    resourceType: 'instance',
    tell: ({ name }, turn) => ({ title: `Snapshot of ${name} created`, body: '', data: { size_gb: 20 + (turn % 50) } }),
  },
  {
    kind: 'volume.nearly_full',
    severity: 'warning',
    resourceType: 'instance',
    tell: ({ name }, turn) => ({
      title: `${name}-data is ${85 + (turn % 13)} % full`,
      body: 'Extend the volume, or free some space.',
      data: { used_percent: 85 + (turn % 13), mount: '/srv' },
    }),
  },
  {
    kind: 'maintenance.scheduled',
    severity: 'info',
    resourceType: 'region',
    tell: ({ region }) => ({
      title: `Maintenance in ${region}`,
      body: 'Short interruptions of the network are possible – at most five minutes.',
      data: { region, duration_minutes: 120, affects: ['network', 'console'] },
      resourceId: region,
    }),
  },
  {
    kind: 'security.login_new_device',
    severity: 'warning',
    resourceType: 'user',
    tell: (_, turn) => ({
      title: 'Sign-in from a new device',
      body: 'If it was not somebody of your team, revoke the session.',
      data: { ip: `203.0.113.${1 + (turn % 250)}`, country: null, user_agent: 'Firefox on Linux' },
      resourceId: null,
    }),
  },
];

/** Rows ordered by `created`, and inserted in this order: a trigger numbers them row by row. */
export function notificationRows(now: Date): Prisma.NotificationCreateManyInput[] {
  return [
    ...notificationIds.map((id, index) => notificationRow(now, { id, projectId: project.id, index, count: COUNT, about: fleet })),
    ...Array.from({ length: FOREIGN_COUNT }, (_, index) => {
      const id = demoId(`notification/foreign/${index + 1}`, index);
      return notificationRow(now, { id, projectId: foreignProject.id, index, count: FOREIGN_COUNT, about: foreignFleet });
    }),
  ];
}

interface Slot {
  readonly id: string;
  readonly projectId: string;
  readonly index: number;
  readonly count: number;
  readonly about: readonly DemoInstance[];
}

function notificationRow(now: Date, { id, projectId, index, count, about }: Slot): Prisma.NotificationCreateManyInput {
  // The steps are coprime to the list lengths, so that kinds and instances vary independently.
  const story = stories[(index * 4) % stories.length];
  const fitting = about.filter(story?.fits ?? isThere);
  const instance = fitting[(index * 7) % fitting.length];
  if (!story || !instance) throw new Error('the demo has nothing to tell');
  const { title, body, data, resourceId } = story.tell(instance, index);
  const subject = resourceId === undefined ? { instance: { id: instance.id, name: instance.name } } : {};
  return {
    id,
    projectId,
    kind: story.kind,
    severity: story.severity,
    title,
    body,
    resourceType: story.resourceType,
    resourceId: resourceId === undefined ? instance.id : resourceId,
    data: { ...subject, ...data },
    created: hoursBefore(now, (TWO_WEEKS_HOURS * (count - index)) / count - 0.5),
  };
}
