/** The reasons of §2.4 against offering the daily backup, in the order in which they are tested. */
export const reasons = [
  'instance_not_active',
  'backup_already_enabled',
  'missing_billing_service',
  'missing_billing_client',
  'trial_already_open',
  'backup_option_unavailable',
  'unsupported_billing_cycle',
] as const;

export type Reason = (typeof reasons)[number];

/** The facts that the reasons depend on. */
export interface TrialFacts {
  readonly instanceStatus: string;
  readonly dailyBackup: boolean;
  readonly hasOpenTrial: boolean;
  readonly hasBillingService: boolean;
  readonly hasBillingClient: boolean;
  readonly hasOption: boolean;
  /** Whether the option is sold for the billing cycle of the service. */
  readonly isCycleSold: boolean;
}

/** Facts → all reasons that apply, in order. With none the option can be offered; else the first one is the response's `reason` (§4.3). */
export function findBlockers(facts: TrialFacts): Reason[] {
  const applies: Record<Reason, boolean> = {
    instance_not_active: facts.instanceStatus !== 'active',
    // An open trial switches the backup on; it is reported as `trial_already_open` only.
    backup_already_enabled: facts.dailyBackup && !facts.hasOpenTrial,
    missing_billing_service: !facts.hasBillingService,
    missing_billing_client: facts.hasBillingService && !facts.hasBillingClient,
    trial_already_open: facts.hasOpenTrial,
    backup_option_unavailable: !facts.hasOption,
    unsupported_billing_cycle: facts.hasOption && facts.hasBillingService && !facts.isCycleSold,
  };
  return reasons.filter((reason) => applies[reason]);
}
