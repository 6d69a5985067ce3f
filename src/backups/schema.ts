import { builder } from '../graph/builder.ts';
import { describeValues } from '../graph/enums.ts';
import { ownInstance } from '../graph/instance.ts';
import { NodeRef, registerNode } from '../graph/node.ts';
import { ownProject } from '../graph/project.ts';
import { type Reason, reasons } from './eligibility.ts';
import { type BackupTrial, type BackupTrialState, findTrials, readTrialState } from './service.ts';

const BackupTrialBlocker = builder.enumType('BackupTrialBlocker', {
  description: 'The reasons why the daily backup cannot be offered, in the order in which they are checked.',
  values: describeValues<Reason>({
    instance_not_active: 'The instance is not active.',
    backup_already_enabled: 'Its daily backup is already enabled, and not only by an open trial.',
    missing_billing_service: 'It has no billing service.',
    missing_billing_client: 'Its billing service has no client.',
    trial_already_open: 'A trial of it is pending or active.',
    backup_option_unavailable: 'The daily backup is not available for its plan.',
    unsupported_billing_cycle: 'The daily backup is not sold for its billing cycle.',
  }),
});

const BackupTrialRef = builder.objectRef<BackupTrial>('BackupTrial').implement({
  description: 'A trial of the daily backup option. Prices are decimal numbers, as strings.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The id of the trial.' }),
    project: t.field(ownProject),
    instanceId: t.exposeID('instanceId', { description: 'The id of the instance that it is for.' }),
    instance: t.field(ownInstance('The instance that it is for; null if it is no longer known.')),
    instanceName: t.exposeString('instanceName', { description: 'The name of the instance when the trial was created.' }),
    legacyServiceId: t.exposeInt('legacyServiceId', {
      nullable: true,
      description: 'The id of the service in the legacy system; null if unknown.',
    }),
    legacyOrderId: t.exposeInt('legacyOrderId', {
      nullable: true,
      description: 'The id of the order in the legacy system; null if unknown.',
    }),
    legacyInvoiceId: t.exposeInt('legacyInvoiceId', {
      nullable: true,
      description: 'The id of the invoice in the legacy system; null if unknown.',
    }),
    status: t.exposeString('status', {
      description: 'The known values are pending, active, converted, cancelled, expired and failed; the legacy system may add others.',
    }),
    source: t.exposeString('source', { description: 'Where it was requested: `panel`, `api`, … Other values may occur.' }),
    trial: t.exposeBoolean('trial', { description: 'Whether it began as a trial rather than as an order.' }),
    cycle: t.exposeString('cycle', { description: 'The billing cycle: `monthly`, `quarterly`, …' }),
    monthlyPrice: t.exposeString('monthlyPrice', { description: 'The price per month, a decimal number.' }),
    cyclePrice: t.exposeString('cyclePrice', { description: 'The price per billing cycle, a decimal number.' }),
    credited: t.exposeString('credited', { description: 'The amount that was credited, a decimal number.' }),
    startedAt: t.expose('startedAt', { type: 'DateTime', nullable: true, description: 'When it started; null before that.' }),
    endsAt: t.expose('endsAt', { type: 'DateTime', nullable: true, description: 'When it ends; null until it has started.' }),
    remindedAt: t.expose('remindedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the user was reminded of its end; null before that.',
    }),
    resolvedAt: t.expose('resolvedAt', { type: 'DateTime', nullable: true, description: 'When it was resolved; null while it is open.' }),
    failureReason: t.exposeString('failureReason', { description: 'Why it failed; empty if it did not.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was created.' }),
  }),
});

const BackupTrialStateRef = builder.objectRef<BackupTrialState>('BackupTrialState').implement({
  description: 'Whether the daily backup option can be offered for an instance, and its latest trial.',
  fields: (t) => ({
    trial: t.expose('trial', { type: BackupTrialRef, nullable: true, description: 'The latest trial; null if there never was one.' }),
    eligible: t.boolean({
      description: 'Whether the daily backup option can be offered.',
      resolve: ({ blockers }) => blockers.length === 0,
    }),
    reason: t.string({
      description: 'Why it cannot be offered: the first of the `blockers`, or empty if there is none.',
      extensions: {
        values: ['', ...reasons],
        v1Description: 'Why it cannot be offered: the first reason that applies, or empty if there is none.',
      },
      resolve: ({ blockers }) => blockers[0] ?? '',
    }),
    blockers: t.expose('blockers', {
      type: [BackupTrialBlocker],
      description: 'All reasons that apply, in the order in which they are checked.',
    }),
    monthlyPrice: t.exposeString('monthlyPrice', {
      description: 'The price of the option per month, a decimal number: "0.00" if the option is not known.',
    }),
    currency: t.exposeString('currency', { description: 'The currency, as an ISO 4217 code.' }),
    trialDays: t.exposeInt('trialDays', { description: 'The length of a trial in days: 0 if the option is not known.' }),
  }),
});

registerNode('BackupTrial', { inProject: findTrials });

builder.prismaObjectField('Instance', 'backupTrial', (t) =>
  t.field({
    type: BackupTrialStateRef,
    description: 'Whether the daily backup option can be offered for the instance, and its latest trial.',
    resolve: ({ id }, _args, { database }) => readTrialState(database, id),
  }),
);
