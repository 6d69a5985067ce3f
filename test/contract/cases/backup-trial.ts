import { backupTrialRows, trialExamples } from '../../../demo/backups.ts';
import { findInstance } from '../../../demo/compute.ts';
import { daysBefore } from '../../../demo/time.ts';
import type { TestApp } from '../../support/app.ts';
import { type Case, refusals, type Who } from '../../support/doors.ts';
import { ids, seededAt } from '../../support/fixtures.ts';

/** What the demo's catalogue has for a plan. */
const small = { monthly_price: '2.00', currency: 'EUR', trial_days: 14 };
const medium = { monthly_price: '4.00', currency: 'EUR', trial_days: 14 };
const large = { monthly_price: '8.00', currency: 'EUR', trial_days: 14 };
const extraLarge = { monthly_price: '16.00', currency: 'EUR', trial_days: 30 };
const nothing = { monthly_price: '0.00', currency: 'EUR', trial_days: 0 };

type Offer = typeof small;

const place = (name: string) => ({ instance_id: findInstance(name).id });

const blocked = (name: string, reason: string, { monthly_price, currency, trial_days }: Offer, as: Who = 'viewer'): Case => ({
  name: `${name}: ${reason || 'eligible'}`,
  operation: 'backup_trial_state',
  status: 200,
  as,
  place: place(name),
  body: { trial: null, eligible: reason === '', reason, monthly_price, currency, trial_days },
});

/** Days before the demo was filled in. */
interface Times {
  readonly started_at?: number;
  readonly ends_at?: number;
  readonly reminded_at?: number;
  readonly resolved_at?: number;
  readonly created: number;
}

/** §2.4, in its order. What has not happened yet, or is not known, is null. */
async function trialBody(app: TestApp, name: string, fields: Readonly<Record<string, unknown>>, times: Times) {
  const now = await seededAt(app);
  const moment = (days: number | undefined) => (days === undefined ? null : daysBefore(now, days).toISOString());
  return {
    id: fields.id,
    instance: findInstance(name).id,
    instance_name: name,
    legacy_service_id: findInstance(name).billing?.serviceId ?? null,
    legacy_order_id: fields.legacy_order_id ?? null,
    legacy_invoice_id: fields.legacy_invoice_id ?? null,
    status: fields.status,
    source: fields.source,
    trial: fields.trial ?? true,
    cycle: fields.cycle,
    monthly_price: fields.monthly_price,
    cycle_price: fields.cycle_price,
    credited: fields.credited ?? '0.00',
    started_at: moment(times.started_at),
    ends_at: moment(times.ends_at),
    reminded_at: moment(times.reminded_at),
    resolved_at: moment(times.resolved_at),
    failure_reason: fields.failure_reason ?? '',
    created: moment(times.created),
  };
}

const withTrial = (
  name: string,
  reason: string,
  { monthly_price, currency, trial_days }: Offer,
  fields: Readonly<Record<string, unknown>>,
  times: Times,
): Case => ({
  name: `${name}: ${reason || 'eligible'}, the latest trial ${String(fields.status)}`,
  operation: 'backup_trial_state',
  status: 200,
  place: place(name),
  prepare: async (app) => ({
    body: {
      trial: await trialBody(app, name, { id: latestTrialId(name), ...fields }, times),
      eligible: reason === '',
      reason,
      monthly_price,
      currency,
      trial_days,
    },
  }),
});

function latestTrialId(name: string) {
  const rows = backupTrialRows(new Date()).filter(({ instanceName }) => instanceName === name);
  return rows.at(-1)?.id;
}

const quarterly = { cycle: 'quarterly', monthly_price: '8.00', cycle_price: '22.80' };

export const backupTrialCases: readonly Case[] = [
  blocked('web-01', '', medium),
  blocked('web-01', '', medium, 'member by key'),
  blocked('staging-01', 'instance_not_active', small),
  blocked('legacy-01', 'missing_billing_service', small),
  blocked('legacy-02', 'missing_billing_client', small),
  blocked('gpu-01', 'backup_option_unavailable', nothing),
  blocked('db-03', 'unsupported_billing_cycle', extraLarge),
  blocked('mail-01', 'backup_already_enabled', small),
  blocked('legacy-05', 'instance_not_active', small),
  withTrial(
    'db-01',
    'backup_already_enabled',
    extraLarge,
    {
      status: 'converted',
      source: 'panel',
      credited: '5.33',
      legacy_order_id: 910_004,
      legacy_invoice_id: 920_004,
      cycle: 'monthly',
      monthly_price: '16.00',
      cycle_price: '16.00',
    },
    { created: 120, started_at: 120, ends_at: 90, reminded_at: 93, resolved_at: 91 },
  ),
  withTrial(
    'api-03',
    'trial_already_open',
    large,
    { ...quarterly, status: 'active', source: 'panel', legacy_order_id: 910_007 },
    { created: 12, started_at: 12, ends_at: -2, reminded_at: 1 },
  ),
  withTrial('api-04', 'trial_already_open', large, { ...quarterly, status: 'pending', source: 'api' }, { created: 0.02 }),
  withTrial(
    'web-02',
    '',
    medium,
    { status: 'expired', source: 'campaign', legacy_order_id: 910_005, cycle: 'monthly', monthly_price: '4.00', cycle_price: '4.00' },
    { created: 60, started_at: 60, ends_at: 46, reminded_at: 49, resolved_at: 46 },
  ),
  withTrial(
    'cache-02',
    '',
    medium,
    {
      status: 'failed',
      source: 'panel',
      legacy_order_id: 910_006,
      cycle: 'yearly',
      monthly_price: '4.00',
      cycle_price: '40.00',
      failure_reason: 'The order was declined: the payment method has expired.',
    },
    { created: 9, resolved_at: 9 },
  ),
  withTrial(
    'db-02',
    'backup_already_enabled',
    extraLarge,
    {
      status: 'converted',
      source: 'order',
      trial: false,
      legacy_order_id: 910_002,
      legacy_invoice_id: 920_002,
      cycle: 'monthly',
      monthly_price: '16.00',
      cycle_price: '16.00',
    },
    { created: 190, resolved_at: 190 },
  ),
  {
    name: 'without an option, the currency of the organization',
    operation: 'backup_trial_state',
    status: 200,
    as: 'outsider',
    async prepare({ app }) {
      const { id } = await app.database.prisma.instance.create({
        data: {
          projectId: ids.foreignProject.id,
          name: 'unsold',
          status: 'active',
          plan: 'no-such-plan',
          region: 'x',
          vcpu: 1,
          ramMb: 1,
          storageGb: 1,
        },
      });
      const place = { organization_id: ids.foreignOrganization.id, project_id: ids.foreignProject.id, instance_id: id };
      const offer = { monthly_price: '0.00', currency: 'USD', trial_days: 0 };
      return { place, body: { trial: null, eligible: false, reason: 'missing_billing_service', ...offer } };
    },
  },
  {
    name: 'an instance of another organization',
    operation: 'backup_trial_state',
    status: 404,
    place: { instance_id: findInstance('shop-01').id },
    refusal: refusals.notFound,
  },
  {
    name: 'an instance of another project of the same organization',
    operation: 'backup_trial_state',
    status: 404,
    place: { project_id: ids.emptyProject.id, instance_id: trialExamples.eligible },
    refusal: refusals.notFound,
  },
];
