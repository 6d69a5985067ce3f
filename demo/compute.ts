import type { Prisma } from '../src/generated/prisma/client.ts';
import type { InstanceStatus } from '../src/generated/prisma/enums.ts';
import { demoId } from './identity.ts';
import { foreignProject, project } from './people.ts';
import { daysBefore } from './time.ts';

const sizes = {
  'vps-s': { vcpu: 1, ramMb: 2_048, storageGb: 40 },
  'vps-m': { vcpu: 2, ramMb: 4_096, storageGb: 80 },
  'vps-l': { vcpu: 4, ramMb: 8_192, storageGb: 160 },
  'vps-xl': { vcpu: 8, ramMb: 16_384, storageGb: 320 },
  'gpu-a100': { vcpu: 12, ramMb: 122_880, storageGb: 960 },
} as const;

export type Plan = keyof typeof sizes;
export type Cycle = 'monthly' | 'quarterly' | 'yearly';

/** How the legacy side bills an instance: the cycle of its service, and whether the service has a client. */
interface Billing {
  readonly serviceId: number;
  readonly cycle: Cycle;
  readonly hasClient: boolean;
}

/** The traits that a group of instances shares, and that single instances override. */
interface Traits {
  readonly plan: Plan;
  readonly region: string;
  readonly status: InstanceStatus;
  readonly placed: boolean;
  readonly throttled: boolean;
  readonly dailyBackup: boolean;
  /** Negative if it lies in the past. */
  readonly cancelledInDays: number | null;
  readonly cycle: Cycle | null;
  readonly hasClient: boolean;
}

export interface DemoInstance extends Omit<Traits, 'cycle' | 'hasClient'> {
  readonly id: string;
  readonly projectId: string;
  readonly name: string;
  readonly ageDays: number;
  readonly hypervisor: string | null;
  readonly billing: Billing | null;
}

interface Group {
  readonly prefix: string;
  readonly count: number;
  readonly plan: Plan;
  readonly region: string;
  readonly cycle?: Cycle;
  readonly dailyBackup?: boolean;
}

const ordinary = {
  status: 'active',
  placed: true,
  throttled: false,
  dailyBackup: false,
  cancelledInDays: null,
  cycle: 'monthly',
  hasClient: true,
} as const;

const groups: readonly Group[] = [
  { prefix: 'web', count: 8, plan: 'vps-m', region: 'eu-central-1' },
  { prefix: 'api', count: 6, plan: 'vps-l', region: 'eu-central-1', cycle: 'quarterly' },
  { prefix: 'worker', count: 8, plan: 'vps-s', region: 'eu-north-1' },
  { prefix: 'db', count: 4, plan: 'vps-xl', region: 'eu-central-1', dailyBackup: true },
  { prefix: 'cache', count: 4, plan: 'vps-m', region: 'eu-central-1', cycle: 'yearly' },
  { prefix: 'queue', count: 3, plan: 'vps-s', region: 'eu-north-1', cycle: 'quarterly' },
  { prefix: 'build', count: 6, plan: 'vps-l', region: 'us-east-1' },
  { prefix: 'staging', count: 5, plan: 'vps-s', region: 'us-east-1' },
  { prefix: 'gpu', count: 3, plan: 'gpu-a100', region: 'us-east-1' },
  { prefix: 'mail', count: 2, plan: 'vps-s', region: 'eu-north-1', cycle: 'yearly', dailyBackup: true },
  { prefix: 'legacy', count: 5, plan: 'vps-s', region: 'eu-north-1' },
];

/** `trialExamples` in `backups.ts` depends on some of these: each instance there has exactly one reason. */
const exceptions: Readonly<Record<string, Partial<Traits>>> = {
  'web-05': { throttled: true },
  'web-06': { cancelledInDays: 12 },
  'web-07': { status: 'rebuilding' },
  'web-08': { status: 'provisioning', placed: false },
  'api-03': { dailyBackup: true },
  'api-05': { status: 'resizing' },
  'api-06': { status: 'suspended' },
  'worker-04': { throttled: true },
  'worker-06': { status: 'error', placed: false },
  'worker-07': { placed: false },
  'worker-08': { status: 'provisioning', placed: false },
  'db-03': { dailyBackup: false, cycle: 'yearly' },
  'cache-04': { cancelledInDays: -2 },
  'build-04': { status: 'stopped' },
  'build-05': { status: 'stopped', cancelledInDays: 3 },
  'build-06': { status: 'error', throttled: true },
  'staging-01': { status: 'stopped' },
  'staging-04': { status: 'stopped' },
  'staging-05': { status: 'suspended', cancelledInDays: 27 },
  'gpu-03': { status: 'suspended' },
  'legacy-01': { cycle: null },
  'legacy-02': { hasClient: false },
  // Traits of deleted instances, which no count may include.
  'legacy-03': { status: 'deleted', placed: false, cancelledInDays: -40 },
  'legacy-04': { status: 'deleted', placed: false, throttled: true, cancelledInDays: 9 },
  'legacy-05': { status: 'deleted', cycle: null },
};

const foreignGroups: readonly Group[] = [
  { prefix: 'shop', count: 4, plan: 'vps-l', region: 'us-west-2' },
  { prefix: 'search', count: 2, plan: 'vps-xl', region: 'us-west-2', cycle: 'quarterly' },
];

const foreignExceptions: Readonly<Record<string, Partial<Traits>>> = {
  'shop-03': { throttled: true },
  'shop-04': { status: 'stopped' },
  'search-02': { status: 'suspended', placed: false },
};

/** The instances of the main project, oldest first. */
export const fleet: readonly DemoInstance[] = build(project.id, groups, exceptions, 900_101);
export const foreignFleet: readonly DemoInstance[] = build(foreignProject.id, foreignGroups, foreignExceptions, 900_901);

/** The instance with this name, which is unique across projects; throws if there is none. */
export function findInstance(name: string): DemoInstance {
  const found = [...fleet, ...foreignFleet].find((instance) => instance.name === name);
  if (!found) throw new Error(`the demo has no instance ${name}`);
  return found;
}

export function sizeOf({ plan }: DemoInstance): { vcpu: number; ramMb: number; storageGb: number } {
  return sizes[plan];
}

export function instanceRows(now: Date): Prisma.InstanceCreateManyInput[] {
  return [...fleet, ...foreignFleet].map(({ id, projectId, name, status, plan, region, ...instance }) => ({
    id,
    projectId,
    name,
    status,
    plan,
    region,
    ...sizes[plan],
    hypervisor: instance.hypervisor,
    throttled: instance.throttled,
    dailyBackup: instance.dailyBackup,
    cancellationAt: instance.cancelledInDays === null ? null : daysBefore(now, -instance.cancelledInDays),
    billingServiceId: instance.billing?.serviceId ?? null,
    created: daysBefore(now, instance.ageDays),
    modified: daysBefore(now, instance.ageDays / 10),
  }));
}

function build(
  projectId: string,
  of: readonly Group[],
  except: Readonly<Record<string, Partial<Traits>>>,
  firstServiceId: number,
): DemoInstance[] {
  const members = of.flatMap(({ prefix, count, ...common }) =>
    Array.from({ length: count }, (_, index) => ({ name: `${prefix}-${String(index + 1).padStart(2, '0')}`, common })),
  );
  return members.map(({ name, common }, index) => {
    const { cycle, hasClient, ...traits }: Traits = { ...ordinary, ...common, ...except[name] };
    return {
      ...traits,
      id: demoId(`instance/${name}`, index),
      projectId,
      name,
      ageDays: (members.length - index) * 6,
      hypervisor: traits.placed ? `hv-${traits.region}-${String((index % 7) + 1).padStart(2, '0')}` : null,
      billing: cycle && { serviceId: firstServiceId + index, cycle, hasClient },
    };
  });
}
