import type { Prisma } from '../src/generated/prisma/client.ts';
import { type Cycle, findInstance, fleet, foreignFleet, type Plan } from './compute.ts';
import { demoId } from './identity.ts';
import { foreignOrganization, organization } from './people.ts';
import { daysBefore } from './time.ts';

/** An eligible instance, and for each reason of §2.4 an instance for which that reason is the first that holds. */
export const trialExamples = {
  eligible: findInstance('web-01').id,
  instance_not_active: findInstance('staging-01').id,
  backup_already_enabled: findInstance('db-01').id,
  missing_billing_service: findInstance('legacy-01').id,
  missing_billing_client: findInstance('legacy-02').id,
  trial_already_open: findInstance('api-03').id,
  backup_option_unavailable: findInstance('gpu-01').id,
  unsupported_billing_cycle: findInstance('db-03').id,
} as const;

export type TrialExample = keyof typeof trialExamples;

const client = { id: 900_001, organizationId: organization.id, name: 'Acme Cloud GmbH' } as const;
const foreignClient = { id: 900_002, organizationId: foreignOrganization.id, name: 'Globex Hosting Inc.' } as const;

type Prices = Readonly<{ monthly: string } & Partial<Record<Cycle, string>>>;

/** The daily backup options. `gpu-a100` has none, and `vps-xl` has no yearly price. */
const catalogue: Readonly<Partial<Record<Plan, { readonly trialDays: number; readonly prices: Prices }>>> = {
  'vps-s': { trialDays: 14, prices: { monthly: '2.00', quarterly: '5.70', yearly: '20.00' } },
  'vps-m': { trialDays: 14, prices: { monthly: '4.00', quarterly: '11.40', yearly: '40.00' } },
  'vps-l': { trialDays: 14, prices: { monthly: '8.00', quarterly: '22.80', yearly: '80.00' } },
  'vps-xl': { trialDays: 30, prices: { monthly: '16.00', quarterly: '45.60' } },
};

export function backupOptionRows(): Prisma.BackupOptionCreateManyInput[] {
  return Object.entries(catalogue).map(([plan, { trialDays, prices }]) => ({
    plan,
    monthlyPrice: prices.monthly,
    currency: organization.currency,
    trialDays,
  }));
}

export function backupOptionPriceRows(): Prisma.BackupOptionPriceCreateManyInput[] {
  return Object.entries(catalogue).flatMap(([plan, { prices }]) =>
    Object.entries(prices).map(([cycle, price]) => ({ plan, cycle, price })),
  );
}

export function billingClientRows(): Prisma.BillingClientCreateManyInput[] {
  return [client, foreignClient];
}

/** One service for each instance that is billed. */
export function billingServiceRows(): Prisma.BillingServiceCreateManyInput[] {
  const rows = (instances: typeof fleet, clientId: number) =>
    instances.flatMap(({ billing }) =>
      billing ? [{ id: billing.serviceId, clientId: billing.hasClient ? clientId : null, cycle: billing.cycle }] : [],
    );
  return [...rows(fleet, client.id), ...rows(foreignFleet, foreignClient.id)];
}

/** Times are days before now; a time is absent if the trial has not reached that step. */
interface DemoTrial {
  readonly on: string;
  readonly status: string;
  readonly source: string;
  readonly trial?: boolean;
  readonly credited?: string;
  readonly createdDaysAgo: number;
  readonly startedDaysAgo?: number;
  readonly endsDaysAgo?: number;
  readonly remindedDaysAgo?: number;
  readonly resolvedDaysAgo?: number;
  readonly failureReason?: string;
  readonly isOrdered?: boolean;
  readonly isInvoiced?: boolean;
}

/** Oldest first. */
const trials: readonly DemoTrial[] = [
  { on: 'web-02', status: 'cancelled', source: 'panel', createdDaysAgo: 200, startedDaysAgo: 200, endsDaysAgo: 186, resolvedDaysAgo: 195 },
  { on: 'db-02', status: 'converted', source: 'order', trial: false, createdDaysAgo: 190, resolvedDaysAgo: 190, isInvoiced: true },
  { on: 'db-01', status: 'failed', source: 'api', createdDaysAgo: 121, resolvedDaysAgo: 121, failureReason: 'payment_method_missing' },
  {
    on: 'db-01',
    status: 'converted',
    source: 'panel',
    credited: '5.33',
    createdDaysAgo: 120,
    startedDaysAgo: 120,
    endsDaysAgo: 90,
    remindedDaysAgo: 93,
    resolvedDaysAgo: 91,
    isInvoiced: true,
  },
  {
    on: 'web-02',
    status: 'expired',
    source: 'campaign',
    createdDaysAgo: 60,
    startedDaysAgo: 60,
    endsDaysAgo: 46,
    remindedDaysAgo: 49,
    resolvedDaysAgo: 46,
  },
  {
    on: 'cache-02',
    status: 'failed',
    source: 'panel',
    createdDaysAgo: 9,
    resolvedDaysAgo: 9,
    failureReason: 'The order was declined: the payment method has expired.',
  },
  { on: 'api-03', status: 'active', source: 'panel', createdDaysAgo: 12, startedDaysAgo: 12, endsDaysAgo: -2, remindedDaysAgo: 1 },
  { on: 'api-04', status: 'pending', source: 'api', createdDaysAgo: 0.02, isOrdered: false },
];

export function backupTrialRows(now: Date): Prisma.BackupTrialCreateManyInput[] {
  return trials.map((trial, index) => {
    const instance = findInstance(trial.on);
    const cycle = instance.billing?.cycle ?? 'monthly';
    const prices = catalogue[instance.plan]?.prices;
    const moment = (daysAgo: number | undefined) => (daysAgo === undefined ? null : daysBefore(now, daysAgo));
    return {
      id: demoId(`trial/${index + 1}`, index),
      instanceId: instance.id,
      instanceName: instance.name,
      legacyServiceId: instance.billing?.serviceId ?? null,
      legacyOrderId: trial.isOrdered === false ? null : 910_001 + index,
      legacyInvoiceId: trial.isInvoiced ? 920_001 + index : null,
      status: trial.status,
      source: trial.source,
      trial: trial.trial ?? true,
      cycle,
      monthlyPrice: prices?.monthly ?? '0.00',
      cyclePrice: prices?.[cycle] ?? '0.00',
      credited: trial.credited ?? '0.00',
      startedAt: moment(trial.startedDaysAgo),
      endsAt: moment(trial.endsDaysAgo),
      remindedAt: moment(trial.remindedDaysAgo),
      resolvedAt: moment(trial.resolvedDaysAgo),
      failureReason: trial.failureReason ?? '',
      created: daysBefore(now, trial.createdDaysAgo),
    };
  });
}
