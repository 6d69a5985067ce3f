import type { Instance } from '../generated/prisma/client.ts';
import { builder } from '../graph/builder.ts';
import { describeValues } from '../graph/enums.ts';
import { loadInProject, NodeRef, registerNode } from '../graph/node.ts';
import { ownProject } from '../graph/project.ts';
import { InstanceRef } from '../graph/refs.ts';
import { type Reason, reasons } from './eligibility.ts';
import { type BackupTrial, type BackupTrialState, findTrials, readTrialState } from './service.ts';

const BackupTrialBlocker = builder.enumType('BackupTrialBlocker', {
  description: 'Why the daily backup cannot be offered, in the order in which the reasons are tested.',
  values: describeValues<Reason>({
    instance_not_active: 'The instance is not active.',
    backup_already_enabled: 'Its daily backup is on, and not merely through an open trial.',
    missing_billing_service: 'It has no billing service.',
    missing_billing_client: 'Its billing service has no client.',
    trial_already_open: 'A trial of it is pending or active.',
    backup_option_unavailable: 'There is no daily backup for its plan.',
    unsupported_billing_cycle: 'The daily backup is not sold for its billing cycle.',
  }),
});

const BackupTrialRef = builder.objectRef<BackupTrial>('BackupTrial').implement({
  description: 'A trial of the daily backup option. Prices are decimal numbers, as strings.',
  interfaces: [NodeRef],
  fields: (t) => ({
    id: t.exposeID('id', { description: 'The trial.' }),
    project: t.field(ownProject),
    instanceId: t.exposeID('instanceId', { description: 'The instance that it is for.' }),
    instance: t.field({
      type: InstanceRef,
      nullable: true,
      description: 'The instance that it is for.',
      resolve: ({ projectId, instanceId }, _args, context, info) =>
        loadInProject<Instance>(context, 'Instance', { scope: context.findProject(projectId), id: instanceId }, info),
    }),
    instanceName: t.exposeString('instanceName', { description: 'The name of the instance when the trial was made.' }),
    legacyServiceId: t.exposeInt('legacyServiceId', { nullable: true, description: 'The service of the legacy side; null where unknown.' }),
    legacyOrderId: t.exposeInt('legacyOrderId', { nullable: true, description: 'The order of the legacy side; null where unknown.' }),
    legacyInvoiceId: t.exposeInt('legacyInvoiceId', { nullable: true, description: 'The invoice of the legacy side; null where unknown.' }),
    status: t.exposeString('status', {
      description: 'Known are pending, active, converted, cancelled, expired and failed; the legacy side may add others.',
    }),
    source: t.exposeString('source', { description: 'Where it was asked for: `panel`, `api`, … An open list.' }),
    trial: t.exposeBoolean('trial', { description: 'Whether it began as a trial, rather than as an order.' }),
    cycle: t.exposeString('cycle', { description: 'The billing cycle: `monthly`, `quarterly`, …' }),
    monthlyPrice: t.exposeString('monthlyPrice', { description: 'A decimal number: the price of a month.' }),
    cyclePrice: t.exposeString('cyclePrice', { description: 'A decimal number: the price of a cycle.' }),
    credited: t.exposeString('credited', { description: 'A decimal number: what was credited.' }),
    startedAt: t.expose('startedAt', { type: 'DateTime', nullable: true, description: 'Null until it has started.' }),
    endsAt: t.expose('endsAt', { type: 'DateTime', nullable: true, description: 'Null until it has started.' }),
    remindedAt: t.expose('remindedAt', { type: 'DateTime', nullable: true, description: 'Null until the user was reminded of its end.' }),
    resolvedAt: t.expose('resolvedAt', { type: 'DateTime', nullable: true, description: 'Null while it is open.' }),
    failureReason: t.exposeString('failureReason', { description: 'Empty where nothing failed.' }),
    created: t.expose('created', { type: 'DateTime', description: 'When it was made.' }),
  }),
});

const BackupTrialStateRef = builder.objectRef<BackupTrialState>('BackupTrialState').implement({
  description: 'Whether the daily backup option can be offered on an instance, and the latest trial of it.',
  fields: (t) => ({
    trial: t.expose('trial', { type: BackupTrialRef, nullable: true, description: 'The latest; null where there never was one.' }),
    eligible: t.boolean({
      description: 'Whether the daily backup option can be offered.',
      resolve: ({ blockers }) => blockers.length === 0,
    }),
    reason: t.string({
      description: 'Why it cannot be offered: the first reason that holds, empty when eligible.',
      extensions: { values: ['', ...reasons] },
      resolve: ({ blockers }) => blockers[0] ?? '',
    }),
    blockers: t.expose('blockers', {
      type: [BackupTrialBlocker],
      description: 'All reasons that hold, in the order in which they are tested.',
    }),
    monthlyPrice: t.exposeString('monthlyPrice', {
      description: 'A decimal number: what the option costs a month, "0.00" where it is not known.',
    }),
    currency: t.exposeString('currency', { description: 'ISO 4217.' }),
    trialDays: t.exposeInt('trialDays', { description: 'The length of a trial, 0 where the option is not known.' }),
  }),
});

registerNode('BackupTrial', { inProject: ({ database }, requested) => findTrials(database, requested) });

builder.prismaObjectField('Instance', 'backupTrial', (t) =>
  t.field({
    type: BackupTrialStateRef,
    description: 'Whether the daily backup option can be offered on the instance, and its latest trial.',
    resolve: ({ id }, _args, { database }) => readTrialState(database, id),
  }),
);
