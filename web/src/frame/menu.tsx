import { Link, useLocation } from 'wouter';
import { toProject } from '../parts/address.ts';
import { formatNumber } from '../parts/format.ts';

const pages = [
  ['', 'Overview'],
  ['notifications', 'Notifications'],
  ['instances', 'Instances'],
  ['tasks', 'Tasks'],
  ['storage', 'Storage'],
  ['dashboards', 'Dashboards'],
  ['people', 'People'],
] as const;

/** Links to the project's pages and to those of the person. */
export function Menu({ projectId, unread }: { projectId: string | null; unread: number }) {
  const [path] = useLocation();
  const link = (to: string, title: string, isCurrent: boolean, badge = 0) => (
    <li key={to}>
      <Link href={to} aria-current={isCurrent ? 'page' : undefined}>
        {title}
        {badge > 0 && (
          <span className="count">
            {formatNumber(badge)}
            <span className="hidden"> unread</span>
          </span>
        )}
      </Link>
    </li>
  );
  const base = projectId ? toProject(projectId) : '';
  const section = projectId && path.startsWith(base) ? (path.slice(base.length + 1).split('/')[0] ?? '') : null;
  const developers = projectId ? `${base}/developers` : '/developers';
  return (
    <nav aria-label="Pages">
      <ul>
        {projectId &&
          pages.map(([name, title]) =>
            link(name ? `${base}/${name}` : base, title, section === name, name === 'notifications' ? unread : 0),
          )}
        {link('/keys', 'Keys', path === '/keys')}
        {link(developers, 'For developers', path.includes('/developers'))}
      </ul>
    </nav>
  );
}
