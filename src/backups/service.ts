import type { Database } from '../platform/database.ts';
import { findBlockers, type Reason, type TrialFacts } from './eligibility.ts';

/** A trial of the daily backup, as the legacy side wrote it. Prices are decimals, as text. */
export interface BackupTrial {
  readonly id: string;
  readonly instanceId: string;
  readonly instanceName: string;
  readonly legacyServiceId: number | null;
  readonly legacyOrderId: number | null;
  readonly legacyInvoiceId: number | null;
  readonly status: string;
  readonly source: string;
  readonly trial: boolean;
  readonly cycle: string;
  readonly monthlyPrice: string;
  readonly cyclePrice: string;
  readonly credited: string;
  readonly startedAt: Date | null;
  readonly endsAt: Date | null;
  readonly remindedAt: Date | null;
  readonly resolvedAt: Date | null;
  readonly failureReason: string;
  readonly created: Date;
}

/** Whether the daily backup can be offered on an instance, and its latest trial (§2.4). */
export interface BackupTrialState {
  readonly trial: BackupTrial | null;
  readonly blockers: readonly Reason[];
  readonly monthlyPrice: string;
  readonly currency: string;
  readonly trialDays: number;
}

/**
 * The states of the instances, in their order, by two statements however many they are.
 * The ids are those of instances that the caller was given through a ProjectScope.
 */
export async function readTrialStates(database: Database, instanceIds: readonly string[]): Promise<BackupTrialState[]> {
  const [facts, trials] = await Promise.all([readFacts(database, instanceIds), readLatestTrials(database, instanceIds)]);
  const factsById = new Map(facts.map((row) => [row.instanceId, row]));
  const trialsById = new Map(trials.map((row) => [row.instanceId, row]));
  return instanceIds.map((id) => {
    const row = factsById.get(id);
    if (!row) throw new Error(`instance ${id} has gone`);
    const { monthlyPrice, currency, trialDays } = row;
    return { trial: trialsById.get(id) ?? null, blockers: findBlockers(row), monthlyPrice, currency, trialDays };
  });
}

type FactsRow = TrialFacts & {
  readonly instanceId: string;
  readonly monthlyPrice: string;
  readonly currency: string;
  readonly trialDays: number;
};

function readFacts(database: Database, instanceIds: readonly string[]) {
  return database.$queryRaw<FactsRow[]>`
    SELECT instance.id AS "instanceId", instance.status::text AS "instanceStatus", instance.daily_backup AS "dailyBackup",
      EXISTS (
        SELECT FROM backup_trials AS open WHERE open.instance_id = instance.id AND open.status IN ('pending', 'active')
      ) AS "hasOpenTrial",
      service.id IS NOT NULL AS "hasBillingService", service.client_id IS NOT NULL AS "hasBillingClient",
      option.plan IS NOT NULL AS "hasOption", price.plan IS NOT NULL AS "isCycleSold",
      coalesce(option.monthly_price, 0)::numeric(12, 2)::text AS "monthlyPrice",
      coalesce(option.currency, organization.currency) AS currency,
      coalesce(option.trial_days, 0) AS "trialDays"
    FROM instances AS instance
    JOIN projects AS project ON project.id = instance.project_id
    JOIN organizations AS organization ON organization.id = project.organization_id
    LEFT JOIN billing_services AS service ON service.id = instance.billing_service_id
    LEFT JOIN backup_options AS option ON option.plan = instance.plan
    LEFT JOIN backup_option_prices AS price ON price.plan = option.plan AND price.cycle = service.cycle
    WHERE instance.id = ANY (${instanceIds}::uuid[])`;
}

function readLatestTrials(database: Database, instanceIds: readonly string[]) {
  return database.$queryRaw<BackupTrial[]>`
    SELECT trial.id, trial.instance_id AS "instanceId", trial.instance_name AS "instanceName",
      trial.legacy_service_id AS "legacyServiceId", trial.legacy_order_id AS "legacyOrderId",
      trial.legacy_invoice_id AS "legacyInvoiceId", trial.status, trial.source, trial.trial, trial.cycle,
      trial.monthly_price::text AS "monthlyPrice", trial.cycle_price::text AS "cyclePrice", trial.credited::text AS credited,
      trial.started_at AS "startedAt", trial.ends_at AS "endsAt", trial.reminded_at AS "remindedAt",
      trial.resolved_at AS "resolvedAt", trial.failure_reason AS "failureReason", trial.created
    FROM unnest(${instanceIds}::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
      SELECT * FROM backup_trials WHERE instance_id = wanted.id ORDER BY created DESC, id DESC LIMIT 1
    ) AS trial`;
}
