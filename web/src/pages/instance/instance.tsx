import { type ComponentType, Suspense } from 'react';
import { Link } from 'wouter';
import { Badge } from '../../parts/badge.tsx';
import { Id } from '../../parts/id.tsx';
import { Coming, lazyPage } from '../../parts/lazy.tsx';
import { toLastList } from '../../parts/listaddress.ts';
import { Query } from '../../parts/query.tsx';
import { Empty } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Time } from '../../parts/time.tsx';
import { Updates } from '../../parts/updates.ts';
import { toInstance } from './address.ts';
import { InstanceBackups, InstanceSnapshots, InstanceVolumes } from './disks.tsx';
import { Facts } from './facts.tsx';
import { InstanceNotifications } from './notifications.tsx';
import { InstanceQuery, type TabProps } from './query.ts';
import { ConsoleSessions } from './sessions.tsx';
import { InstanceTasks } from './tasks.tsx';
import { TrialOffer } from './trial.tsx';
import './instance.css';

const Console = lazyPage(() => import('./console.tsx'));

const tabs: readonly (readonly [string, string, ComponentType<TabProps>])[] = [
  ['facts', 'Facts', Facts],
  ['console', 'Console', Console],
  ['tasks', 'Tasks', InstanceTasks],
  ['volumes', 'Volumes', InstanceVolumes],
  ['snapshots', 'Snapshots', InstanceSnapshots],
  ['backups', 'Backups', InstanceBackups],
  ['trial', 'Daily backup', TrialOffer],
  ['notifications', 'Notifications', InstanceNotifications],
  ['sessions', 'Console sessions', ConsoleSessions],
];

export default function Instance({ projectId, id, tab }: { projectId: string; id: string; tab: string }) {
  return (
    <>
      <p className="crumbs">
        <Link href={toLastList(projectId, 'instances')}>Instances</Link>
      </p>
      <Query document={InstanceQuery} variables={{ projectId, id }}>
        {({ project }, refetch) =>
          project?.instance && (
            <>
              <Updates update={refetch} />
              <Page project={project} instance={project.instance} tab={tab} />
            </>
          )
        }
      </Query>
    </>
  );
}

function Page({ project, instance, tab }: TabProps & { tab: string }) {
  const [, , Tab] = tabs.find(([name]) => name === tab) ?? [];
  const { id, name, status, throttled, cancellationAt } = instance;
  return (
    <>
      <header className="instance-head">
        <h1>
          <bdi>{name}</bdi>
        </h1>
        <Badge value={status} />
        {throttled && <Badge value="throttled" />}
        {cancellationAt && (
          <span>
            ends <Time value={cancellationAt} />
          </span>
        )}
        <Id value={id} />
      </header>
      <Tabs
        label="Of the instance"
        current={tab}
        tabs={tabs.map(([slug, title]) => ({ name: slug, title, to: toInstance(project.id, id, slug === 'facts' ? undefined : slug) }))}
      />
      <Suspense fallback={<Coming />}>
        {Tab ? (
          <Tab project={project} instance={instance} />
        ) : (
          <Empty title="There is no such part of an instance">
            <p>Choose one of those above.</p>
          </Empty>
        )}
      </Suspense>
    </>
  );
}
