import type { InProject } from '../access/scope.ts';
import { pickInProject } from '../graph/node.ts';
import { Fault } from '../kernel/fault.ts';
import { type Nullable, pickRows } from '../kernel/rows.ts';
import { createSharedLoader } from '../kernel/sharedloader.ts';
import type { Database } from '../platform/database.ts';
import { findBlockers, type Reason, type TrialFacts } from './eligibility.ts';

/** A trial of the daily backup, as the legacy system wrote it. Prices are decimals, as text. */
export interface BackupTrial {
  readonly id: string;
  /** The project of its instance. */
  readonly projectId: string;
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
 * The state of an instance that the caller has read through a ProjectScope; concurrent calls share one statement. Throws
 * `not_found` if the instance has been deleted meanwhile.
 */
export async function readTrialState(database: Database, instanceId: string): Promise<BackupTrialState> {
  const state = await findTrialState(database.shared, instanceId);
  if (!state) throw Fault.notFound();
  return state;
}

const findTrialState = createSharedLoader(async (database: Database, instanceIds: readonly string[]) => {
  const rows = await database.query<StateRow>`
    SELECT instance.id AS "instanceId", instance.project_id AS "projectId", instance.status::text AS "instanceStatus", instance.daily_backup AS "dailyBackup",
      EXISTS (
        SELECT FROM backup_trials AS open WHERE open.instance_id = instance.id AND open.status IN ('pending', 'active')
      ) AS "hasOpenTrial",
      service.id IS NOT NULL AS "hasBillingService", service.client_id IS NOT NULL AS "hasBillingClient",
      option.plan IS NOT NULL AS "hasOption", price.plan IS NOT NULL AS "isCycleSold",
      coalesce(option.monthly_price, 0)::numeric(12, 2)::text AS "optionPrice",
      coalesce(option.currency, organization.currency) AS currency, coalesce(option.trial_days, 0) AS "trialDays",
      trial.id, trial.instance_name AS "instanceName", trial.legacy_service_id AS "legacyServiceId",
      trial.legacy_order_id AS "legacyOrderId", trial.legacy_invoice_id AS "legacyInvoiceId", trial.status, trial.source, trial.trial,
      trial.cycle, trial.monthly_price::text AS "monthlyPrice", trial.cycle_price::text AS "cyclePrice",
      trial.credited::text AS credited, trial.started_at AS "startedAt", trial.ends_at AS "endsAt",
      trial.reminded_at AS "remindedAt", trial.resolved_at AS "resolvedAt", trial.failure_reason AS "failureReason", trial.created
    FROM instances AS instance
    JOIN projects AS project ON project.id = instance.project_id
    JOIN organizations AS organization ON organization.id = project.organization_id
    LEFT JOIN billing_services AS service ON service.id = instance.billing_service_id
    LEFT JOIN backup_options AS option ON option.plan = instance.plan
    LEFT JOIN backup_option_prices AS price ON price.plan = option.plan AND price.cycle = service.cycle
    LEFT JOIN backup_trials AS trial ON trial.id = (
      SELECT latest.id FROM backup_trials AS latest WHERE latest.instance_id = instance.id
      ORDER BY latest.created DESC, latest.id DESC LIMIT 1)
    WHERE instance.id = ANY (${instanceIds}::uuid[])`;
  return pickRows(instanceIds, rows, ({ instanceId }) => instanceId).map((row) => row && toState(row));
});

/** Trials by their ids; null for one whose instance is not in the requested project. */
export async function findTrials(database: Database, requested: readonly InProject[]): Promise<Array<BackupTrial | null>> {
  const rows = await database.prisma.backupTrial.findMany({
    where: { id: { in: requested.map(({ id }) => id) } },
    include: { instance: { select: { projectId: true } } },
  });
  const trials = rows.map(({ instance, monthlyPrice, cyclePrice, credited, ...trial }) => ({
    ...trial,
    projectId: instance.projectId,
    monthlyPrice: monthlyPrice.toFixed(2),
    cyclePrice: cyclePrice.toFixed(2),
    credited: credited.toFixed(2),
  }));
  return pickInProject(requested, trials);
}

function toState(row: StateRow): BackupTrialState {
  const { currency, trialDays } = row;
  return { trial: hasTrial(row) ? row : null, blockers: findBlockers(row), monthlyPrice: row.optionPrice, currency, trialDays };
}

/** The facts, the option, and the latest trial, whose columns are all null if there never was one. */
type StateRow = TrialFacts & {
  readonly instanceId: string;
  readonly projectId: string;
  readonly optionPrice: string;
  readonly currency: string;
  readonly trialDays: number;
} & Nullable<Omit<BackupTrial, 'instanceId' | 'projectId'>>;

function hasTrial(row: StateRow): row is StateRow & BackupTrial {
  return row.id !== null;
}
