import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { toProject } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import { formatNumber } from '../../parts/format.ts';
import { Id } from '../../parts/id.tsx';
import { ExactTime } from '../../parts/time.tsx';
import { toInstance } from './address.ts';
import type { TabProps } from './query.ts';

/** All properties of an instance. */
export function Facts({ project, instance }: TabProps) {
  const { id, status, plan, region, vcpu, ramMb, storageGb, hypervisor, throttled, cancellationAt, dailyBackup, created, modified } =
    instance;
  const groups: readonly (readonly [string, readonly (readonly [string, ReactNode])[]])[] = [
    [
      'State',
      [
        ['Status', <Badge key="status" value={status} />],
        ['Throttled', throttled ? <Badge key="throttled" value="throttled" /> : 'no'],
        ['Ends', cancellationAt ? <ExactTime key="ends" value={cancellationAt} /> : 'no end is set'],
        ['Created', <ExactTime key="created" value={created} />],
        ['Changed', <ExactTime key="modified" value={modified} />],
      ],
    ],
    [
      'Size',
      [
        ['Plan', plan],
        ['vCPU', formatNumber(vcpu)],
        ['Memory', `${formatNumber(ramMb / 1024)} GiB`],
        ['Root disk', `${formatNumber(storageGb)} GB`],
        [
          'Daily backup',
          <Link key="trial" href={toInstance(project.id, id, 'trial')}>
            {dailyBackup ? 'on' : 'off'}
          </Link>,
        ],
      ],
    ],
    [
      'Place',
      [
        ['Region', region],
        [
          'Hypervisor',
          hypervisor ?? (
            <span key="none" className="badge" data-tone="warning">
              none assigned
            </span>
          ),
        ],
        [
          'Project',
          <Link key="project" href={toProject(project.id)}>
            <bdi>{project.name}</bdi>
          </Link>,
        ],
        ['Organization', <bdi key="organization">{project.organization.name}</bdi>],
        ['Id', <Id key="id" value={id} />],
      ],
    ],
  ];
  return (
    <div className="columns">
      {groups.map(([title, facts]) => (
        <section key={title}>
          <h2>{title}</h2>
          <dl className="facts">
            {facts.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}
