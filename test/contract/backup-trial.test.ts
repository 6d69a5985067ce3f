import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { trialExamples } from '../../demo/backups.ts';
import { fleet } from '../../demo/compute.ts';
import { findBlockers, type Reason, type TrialFacts } from '../../src/backups/eligibility.ts';
import { InstanceStatus } from '../../src/generated/prisma/enums.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { runCases } from '../support/doors.ts';
import { backupTrialCases } from './cases/backup-trial.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

runCases(() => app, backupTrialCases);

const inOrder = [
  'instance_not_active',
  'backup_already_enabled',
  'missing_billing_service',
  'missing_billing_client',
  'trial_already_open',
  'backup_option_unavailable',
  'unsupported_billing_cycle',
] as const;

it('has an instance of the demo for every reason, and one that is eligible', async () => {
  const { console: _console, ...instances } = app.demo.instances;
  const states = Object.entries(instances).map(async ([name, id]) => {
    const { json } = await app.ask('GET', `${app.projectPath}/compute/instances/${id}/backup-trial`);
    return [name, json.reason, json.eligible];
  });
  const expected = Object.keys(trialExamples).map((name) => [name, name === 'eligible' ? '' : name, name === 'eligible']);
  expect(await Promise.all(states)).toEqual(expected);
  expect(Object.keys(instances).sort()).toEqual(['eligible', ...inOrder].sort());
});

describe('the reasons, over every combination of facts', () => {
  const either = [false, true];
  const combinations: TrialFacts[] = Object.values(InstanceStatus).flatMap((instanceStatus) =>
    Array.from({ length: 64 }, (_, bits) => {
      const bit = (index: number) => either[(bits >> index) & 1] ?? false;
      return {
        instanceStatus,
        dailyBackup: bit(0),
        hasOpenTrial: bit(1),
        hasBillingService: bit(2),
        hasBillingClient: bit(3),
        hasOption: bit(4),
        isCycleSold: bit(5),
      };
    }),
  );
  const holds = (reason: Reason, facts: TrialFacts): boolean => {
    switch (reason) {
      case 'instance_not_active':
        return facts.instanceStatus !== 'active';
      case 'backup_already_enabled':
        return facts.hasOpenTrial ? false : facts.dailyBackup;
      case 'missing_billing_service':
        return !facts.hasBillingService;
      case 'missing_billing_client':
        return facts.hasBillingService ? !facts.hasBillingClient : false;
      case 'trial_already_open':
        return facts.hasOpenTrial;
      case 'backup_option_unavailable':
        return !facts.hasOption;
      case 'unsupported_billing_cycle':
        return facts.hasOption && facts.hasBillingService ? !facts.isCycleSold : false;
    }
  };

  it('names all that hold, in the order of the contract', () => {
    expect(combinations).toHaveLength(512);
    for (const facts of combinations)
      expect(findBlockers(facts), JSON.stringify(facts)).toEqual(inOrder.filter((one) => holds(one, facts)));
  });

  it('has each reason first for some, and none for some', () => {
    expect(new Set(combinations.map((facts) => findBlockers(facts)[0]))).toEqual(new Set([...inOrder, undefined]));
  });

  it('calls an instance eligible in the one way alone: active, billed, and sold', () => {
    const eligible = combinations.filter((facts) => findBlockers(facts).length === 0);
    expect(eligible).toEqual([
      {
        instanceStatus: 'active',
        dailyBackup: false,
        hasOpenTrial: false,
        hasBillingService: true,
        hasBillingClient: true,
        hasOption: true,
        isCycleSold: true,
      },
    ]);
  });
});

describe('blockers', () => {
  const document = `query ($organizationId: ID!, $id: ID!, $filter: InstanceFilter) {
    project(organizationId: $organizationId, id: $id) {
      instances(first: 100, filter: $filter) { nodes { id backupTrial { eligible reason blockers } } }
    }
  }`;
  const read = async (filter: object | null) => {
    const response = await app.graphql(document, { organizationId: app.demo.organization_id, id: app.demo.project_id, filter });
    return response.json.data.project.instances.nodes as Array<{
      id: string;
      backupTrial: { eligible: boolean; reason: string; blockers: Reason[] };
    }>;
  };

  it('are those that the rows show, for every instance of the demo', async () => {
    const { database } = app.app;
    const rows = await database.prisma.instance.findMany({ include: { billingService: true, backupTrials: true } });
    const options = await database.prisma.backupOption.findMany({ include: { prices: true } });
    const instances = [...(await read(null)), ...(await read({ status: 'deleted' }))];
    expect(instances).toHaveLength(fleet.length);
    for (const { id, backupTrial } of instances) {
      const row = rows.find((candidate) => candidate.id === id);
      if (!row) throw new Error(`no row of ${id}`);
      const { billingService, backupTrials } = row;
      const option = options.find(({ plan }) => plan === row.plan);
      const hasOpenTrial = backupTrials.some(({ status }) => status === 'pending' || status === 'active');
      const expected = {
        instance_not_active: row.status !== 'active',
        backup_already_enabled: row.dailyBackup && !hasOpenTrial,
        missing_billing_service: !billingService,
        missing_billing_client: billingService?.clientId === null,
        trial_already_open: hasOpenTrial,
        backup_option_unavailable: !option,
        unsupported_billing_cycle: !!option && !!billingService && !option.prices.some(({ cycle }) => cycle === billingService.cycle),
      };
      const blockers = inOrder.filter((reason) => expected[reason]);
      expect(backupTrial, row.name).toEqual({ blockers, reason: blockers[0] ?? '', eligible: blockers.length === 0 });
    }
    expect(instances.filter(({ backupTrial }) => backupTrial.eligible).length).toBeGreaterThan(1);
    expect(instances.some(({ backupTrial }) => backupTrial.blockers.length > 1)).toBe(true);
  });
});

describe('a row of the legacy system', () => {
  const trialOf = (id: string) => app.ask('GET', `${app.projectPath}/compute/instances/${id}/backup-trial`);

  it('is shown unchanged: unknown statuses and sources, and prices of any size', async () => {
    const instanceId = fleet.find(({ name }) => name === 'web-03')?.id ?? '';
    await app.app.database.prisma.backupTrial.create({
      data: {
        instanceId,
        instanceName: 'renamed since',
        status: 'on_hold',
        source: 'partner:7',
        cycle: 'biennially',
        monthlyPrice: '1234567890.5',
        cyclePrice: '0.1',
        credited: '-3',
      },
    });
    const { json } = await trialOf(instanceId);
    expect(json).toMatchObject({
      eligible: true,
      reason: '',
      trial: {
        instance_name: 'renamed since',
        status: 'on_hold',
        source: 'partner:7',
        cycle: 'biennially',
        monthly_price: '1234567890.50',
        cycle_price: '0.10',
        credited: '-3.00',
        legacy_service_id: null,
        failure_reason: '',
      },
    });
  });

  it('shows the latest trial, though an older one may still be open', async () => {
    const instanceId = fleet.find(({ name }) => name === 'web-04')?.id ?? '';
    const common = { instanceId, instanceName: 'web-04', source: 'api', cycle: 'monthly', monthlyPrice: '4', cyclePrice: '4' };
    await app.app.database.prisma.backupTrial.create({ data: { ...common, status: 'failed', created: new Date('2026-05-02T00:00:00Z') } });
    await app.app.database.prisma.backupTrial.create({ data: { ...common, status: 'pending', created: new Date('2026-05-01T00:00:00Z') } });
    const { json } = await trialOf(instanceId);
    expect([json.trial.status, json.reason]).toEqual(['failed', 'trial_already_open']);
  });

  it('follows its writes at once: a trial that switches the backup on is the trial, not the backup', async () => {
    const { database } = app.app;
    const instanceId = fleet.find(({ name }) => name === 'worker-01')?.id ?? '';
    const reason = async () => (await trialOf(instanceId)).json.reason;
    expect(await reason()).toBe('');
    await database.prisma.instance.update({ where: { id: instanceId }, data: { dailyBackup: true } });
    expect(await reason()).toBe('backup_already_enabled');
    const common = { instanceName: 'worker-01', source: 'api', cycle: 'monthly', monthlyPrice: '2', cyclePrice: '2' };
    const { id } = await database.prisma.backupTrial.create({ data: { ...common, instanceId, status: 'active' } });
    expect(await reason()).toBe('trial_already_open');
    await database.prisma.backupTrial.update({ where: { id }, data: { status: 'converted' } });
    expect(await reason()).toBe('backup_already_enabled');
  });
});
