import { Link } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { Badge } from '../../parts/badge.tsx';
import { toWords } from '../../parts/format.ts';
import { Query } from '../../parts/query.tsx';
import { Time } from '../../parts/time.tsx';
import { Updates } from '../../parts/updates.ts';
import { toInstance } from './address.ts';
import type { TabProps } from './query.ts';

const TrialQuery = graphql(`
  query TrialOffer($projectId: ID!, $id: ID!) {
    project(id: $projectId) {
      id
      instance(id: $id) {
        id
        backupTrial {
          eligible
          blockers
          currency
          monthlyPrice
          trialDays
          trial {
            id
            status
            trial
            source
            cycle
            cyclePrice
            monthlyPrice
            credited
            created
            startedAt
            endsAt
            remindedAt
            resolvedAt
            failureReason
          }
        }
      }
    }
  }
`);

type Offer = NonNullable<NonNullable<ResultOf<typeof TrialQuery>['project']>['instance']>['backupTrial'];
type Trial = NonNullable<Offer['trial']>;
type Blocker = Offer['blockers'][number];

/** Why a backup cannot be tried, and what to do about it. */
const blockers: Readonly<Record<Blocker, (instance: TabProps['instance']) => readonly [string, string]>> = {
  instance_not_active: ({ status }) => [
    `The instance is not active: it is ${status}.`,
    'A backup is made of an instance that runs. Start it, or wait until what is being done to it is over.',
  ],
  backup_already_enabled: () => ['Its daily backup is on already.', 'There is nothing left to try: its copies are listed under Backups.'],
  missing_billing_service: () => [
    'It belongs to no billing service.',
    'Nobody could be billed after the trial. Ask the provider’s support to connect the instance with what was ordered.',
  ],
  missing_billing_client: () => [
    'Its billing service has no client.',
    'Nobody could be billed after the trial. Ask the provider’s support to say who the client of the service is.',
  ],
  trial_already_open: () => ['A trial of it is pending or active.', 'It is shown below. Wait until it is over, or keep the daily backup.'],
  backup_option_unavailable: ({ plan }) => [
    `There is no daily backup for the plan ${plan}.`,
    'Choose another plan, or make snapshots of the instance where its data changes.',
  ],
  unsupported_billing_cycle: () => [
    'The daily backup is not sold for its billing cycle.',
    'Ask the provider’s support to bill the instance by another cycle.',
  ],
};

/** Whether the daily backup can be tried on the instance, why not, and the latest trial. */
export function TrialOffer({ project, instance }: TabProps) {
  return (
    <Query document={TrialQuery} variables={{ projectId: project.id, id: instance.id }}>
      {({ project: found }, refetch) =>
        found?.instance && (
          <div className="columns">
            <Updates update={refetch} />
            <OfferFacts offer={found.instance.backupTrial} project={project} instance={instance} />
            <TrialFacts trial={found.instance.backupTrial.trial} currency={found.instance.backupTrial.currency} />
          </div>
        )
      }
    </Query>
  );
}

function OfferFacts({ offer, project, instance }: TabProps & { offer: Offer }) {
  const { eligible, currency, monthlyPrice, trialDays } = offer;
  return (
    <section aria-labelledby="offer">
      <h2 id="offer">{eligible ? 'The daily backup can be tried' : 'The daily backup cannot be tried now'}</h2>
      {eligible && (
        <p>
          {trialDays} days for nothing, then {monthlyPrice} {currency} a month. The provider’s panel, where the instance was ordered, begins
          the trial.
        </p>
      )}
      <ul className="blockers">
        {offer.blockers.map((name) => {
          const [why, what] = blockers[name]?.(instance) ?? [`${toWords(name)}.`, 'Ask the provider’s support.'];
          return (
            <li key={name}>
              <strong>{why}</strong> {what}
              {name === 'backup_already_enabled' && (
                <>
                  {' '}
                  <Link href={toInstance(project.id, instance.id, 'backups')}>Backups</Link>
                </>
              )}
            </li>
          );
        })}
      </ul>
      <dl className="facts">
        <dt>Daily backup</dt>
        <dd>{instance.dailyBackup ? 'on' : 'off'}</dd>
        <dt>Price</dt>
        <dd>{Number(monthlyPrice) > 0 ? `${monthlyPrice} ${currency} a month` : 'not known'}</dd>
        <dt>Length of a trial</dt>
        <dd>{trialDays > 0 ? `${trialDays} days` : 'not known'}</dd>
      </dl>
    </section>
  );
}

function TrialFacts({ trial, currency }: { trial: Trial | null; currency: string }) {
  if (!trial) {
    return (
      <section aria-labelledby="trial">
        <h2 id="trial">Latest trial</h2>
        <p className="none">There has never been one.</p>
      </section>
    );
  }
  const moments = [
    ['Asked for', trial.created],
    ['Started', trial.startedAt],
    ['Ends', trial.endsAt],
    ['Reminded', trial.remindedAt],
    ['Over since', trial.resolvedAt],
  ] as const;
  return (
    <section aria-labelledby="trial">
      <h2 id="trial">{trial.trial ? 'Latest trial' : 'Latest order'}</h2>
      {trial.failureReason && (
        <p className="field-error">
          It failed: <bdi>{trial.failureReason}</bdi>
        </p>
      )}
      <dl className="facts">
        <dt>Status</dt>
        <dd>
          <Badge value={trial.status} />
        </dd>
        {moments.map(([title, moment]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{moment ? <Time value={moment} /> : <span className="none">not yet</span>}</dd>
          </div>
        ))}
        <dt>Price</dt>
        <dd>
          {trial.monthlyPrice} {currency} a month, {trial.cyclePrice} {currency} by the cycle “{toWords(trial.cycle)}”
        </dd>
        <dt>Credited</dt>
        <dd>
          {trial.credited} {currency}
        </dd>
        <dt>Asked for by</dt>
        <dd>{toWords(trial.source)}</dd>
      </dl>
    </section>
  );
}
