import { builder } from '../graph/builder.ts';
import { reasons } from './eligibility.ts';
import { type BackupTrial, type BackupTrialState, readTrialStates } from './service.ts';

const BackupTrialBlocker = builder.enumType('BackupTrialBlocker', {
  description: 'Why the daily backup cannot be offered, in the order in which the reasons are tested.',
  values: reasons,
});

const BackupTrialRef = builder.objectRef<BackupTrial>('BackupTrial').implement({
  description: 'A trial of the daily backup option. Prices are decimal numbers, as strings.',
  fields: (t) => ({
    id: t.exposeID('id'),
    instanceId: t.exposeID('instanceId'),
    instanceName: t.exposeString('instanceName'),
    legacyServiceId: t.exposeInt('legacyServiceId', { nullable: true }),
    legacyOrderId: t.exposeInt('legacyOrderId', { nullable: true }),
    legacyInvoiceId: t.exposeInt('legacyInvoiceId', { nullable: true }),
    status: t.exposeString('status', {
      description: 'Known are pending, active, converted, cancelled, expired and failed; the legacy side may add others.',
    }),
    source: t.exposeString('source'),
    trial: t.exposeBoolean('trial'),
    cycle: t.exposeString('cycle'),
    monthlyPrice: t.exposeString('monthlyPrice'),
    cyclePrice: t.exposeString('cyclePrice'),
    credited: t.exposeString('credited'),
    startedAt: t.expose('startedAt', { type: 'DateTime', nullable: true }),
    endsAt: t.expose('endsAt', { type: 'DateTime', nullable: true }),
    remindedAt: t.expose('remindedAt', { type: 'DateTime', nullable: true }),
    resolvedAt: t.expose('resolvedAt', { type: 'DateTime', nullable: true }),
    failureReason: t.exposeString('failureReason', { description: 'Empty where nothing failed.' }),
    created: t.expose('created', { type: 'DateTime' }),
  }),
});

const BackupTrialStateRef = builder.objectRef<BackupTrialState>('BackupTrialState').implement({
  description: 'Whether the daily backup option can be offered on an instance, and the latest trial of it.',
  fields: (t) => ({
    trial: t.expose('trial', { type: BackupTrialRef, nullable: true, description: 'The latest; null where there never was one.' }),
    eligible: t.boolean({ resolve: ({ blockers }) => blockers.length === 0 }),
    reason: t.string({ description: 'The first of `blockers`; empty when eligible.', resolve: ({ blockers }) => blockers[0] ?? '' }),
    blockers: t.expose('blockers', { type: [BackupTrialBlocker], description: 'All that stands in the way.' }),
    monthlyPrice: t.exposeString('monthlyPrice', { description: 'A decimal number: "0.00" where the option is not known.' }),
    currency: t.exposeString('currency', { description: 'ISO 4217.' }),
    trialDays: t.exposeInt('trialDays'),
  }),
});

builder.prismaObjectField('Instance', 'backupTrial', (t) =>
  t.field({
    type: BackupTrialStateRef,
    resolve: ({ id }, _args, { database, loadBatched }) => loadBatched('backup trial', id, (ids) => readTrialStates(database, ids)),
  }),
);
