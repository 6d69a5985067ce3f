import { Link } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toPage } from '../../parts/address.ts';
import { StatusBar } from '../../parts/bar.tsx';
import { formatNumber } from '../../parts/format.ts';
import { Query } from '../../parts/query.tsx';
import { Loading } from '../../parts/states.tsx';
import { Updates } from '../../parts/updates.ts';
import { Newest } from './newest.tsx';

const OverviewQuery = graphql(`
  query Overview($id: ID!) {
    project(id: $id) {
      id
      computeOverview {
        attention {
          cancellationsScheduled
          instancesSuspended
          instancesThrottled
          instancesWithoutHypervisor
          tasksFailed24h
          tasksStuck
        }
        instancesByStatus {
          status
          count
        }
        instancesTotal
        resourcesAllocated {
          ramGb
          storageGb
          vcpu
        }
        resourcesCount {
          backups
          snapshots
          sshKeys
          storageGb
          volumes
          vpcs
        }
        tasksByStatus {
          status
          count
        }
        tasksRecentCount
      }
    }
  }
`);

type Figures = NonNullable<ResultOf<typeof OverviewQuery>['project']>['computeOverview'];

/** The page that shows what needs attention, how much there is, and what has happened, in this order. */
export function Overview({ projectId }: { projectId: string }) {
  return (
    <>
      <h1>Overview</h1>
      <Query document={OverviewQuery} variables={{ id: projectId }} loading={<Loading lines={8} />}>
        {({ project }, refetch) =>
          project && (
            <>
              <Updates update={refetch} />
              <Attention projectId={projectId} attention={project.computeOverview.attention} />
              <Amounts projectId={projectId} figures={project.computeOverview} />
            </>
          )
        }
      </Query>
      <Newest projectId={projectId} />
    </>
  );
}

const attentions = [
  ['tasksFailed24h', 'Tasks failed within 24 hours', 'critical', 'tasks', 'failed_24h'],
  ['tasksStuck', 'Tasks stuck for over an hour', 'critical', 'tasks', 'stuck'],
  ['instancesSuspended', 'Instances suspended', 'warning', 'instances', 'suspended'],
  ['instancesThrottled', 'Instances throttled', 'warning', 'instances', 'throttled'],
  ['instancesWithoutHypervisor', 'Instances without a hypervisor', 'warning', 'instances', 'without_hypervisor'],
  ['cancellationsScheduled', 'Cancellations scheduled', 'info', 'instances', 'cancellation_scheduled'],
] as const;

function Attention({ projectId, attention }: { projectId: string; attention: Figures['attention'] }) {
  return (
    <section aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      <ul className="figures">
        {attentions.map(([name, title, tone, page, value]) => (
          <li key={name}>
            <Link href={toPage(projectId, page, { attention: value })} className="figure" data-tone={attention[name] > 0 ? tone : 'zero'}>
              <strong>{formatNumber(attention[name])}</strong>
              <span>{title}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Amounts({ projectId, figures }: { projectId: string; figures: Figures }) {
  const { instancesByStatus, tasksByStatus, resourcesAllocated, resourcesCount } = figures;
  const shares = (counts: Figures['tasksByStatus'], page: string, search: Readonly<Record<string, string>> = {}) =>
    counts.map(({ status, count }) => ({ status, count, to: toPage(projectId, page, { status, ...search }) }));
  const counts = [
    [resourcesCount.volumes, 'Volumes', 'volumes'],
    [resourcesCount.snapshots, 'Snapshots', 'snapshots'],
    [resourcesCount.backups, 'Backups', 'backups'],
    [resourcesCount.vpcs, 'VPCs', 'vpcs'],
    [resourcesCount.sshKeys, 'SSH keys', 'ssh-keys'],
  ] as const;
  return (
    <div className="columns">
      <section aria-labelledby="instances">
        <h2 id="instances">Instances</h2>
        <StatusBar caption="Instances by status" shares={shares(instancesByStatus, 'instances')} />
      </section>
      <section aria-labelledby="tasks">
        <h2 id="tasks">Tasks of the last 24 hours</h2>
        <StatusBar caption="Tasks by status" shares={shares(tasksByStatus, 'tasks', { created: '24h' })} />
      </section>
      <section aria-labelledby="allocated">
        <h2 id="allocated">Allocated</h2>
        <dl className="facts">
          <dt>vCPU</dt>
          <dd>{formatNumber(resourcesAllocated.vcpu)}</dd>
          <dt>Memory</dt>
          <dd>{formatNumber(resourcesAllocated.ramGb)} GiB</dd>
          <dt>Storage of instances</dt>
          <dd>{formatNumber(resourcesAllocated.storageGb)} GB</dd>
          <dt>Storage of volumes</dt>
          <dd>{formatNumber(resourcesCount.storageGb)} GB</dd>
        </dl>
      </section>
      <section aria-labelledby="owned">
        <h2 id="owned">Owned</h2>
        <dl className="facts">
          {counts.map(([count, title, kind]) => (
            <div key={kind}>
              <dt>
                <Link href={toPage(projectId, `storage/${kind}`)}>{title}</Link>
              </dt>
              <dd>{formatNumber(count)}</dd>
            </div>
          ))}
        </dl>
      </section>
    </div>
  );
}
