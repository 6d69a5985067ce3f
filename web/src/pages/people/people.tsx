import { Link } from 'wouter';
import { toPage } from '../../parts/address.ts';
import { Empty } from '../../parts/states.tsx';
import { OrganizationMembers, ProjectMembers } from './members.tsx';
import './people.css';
import { ConsoleSessions } from './sessions.tsx';

const tabs = [
  ['members', 'Members of the project'],
  ['organization', 'Members of the organization'],
  ['sessions', 'Console sessions'],
] as const;

/** The members with their roles, and the console sessions. */
export default function People({ projectId, tab }: { projectId: string; tab: string }) {
  return (
    <>
      <h1>People</h1>
      <nav className="tabs" aria-label="People">
        {tabs.map(([name, title]) => (
          <Link key={name} href={toPage(projectId, `people/${name}`)} aria-current={tab === name ? 'page' : undefined}>
            {title}
          </Link>
        ))}
      </nav>
      <div className="people-list">
        <Tab projectId={projectId} tab={tab} />
      </div>
    </>
  );
}

function Tab({ projectId, tab }: { projectId: string; tab: string }) {
  if (tab === 'members') return <ProjectMembers projectId={projectId} />;
  if (tab === 'organization') return <OrganizationMembers projectId={projectId} />;
  if (tab === 'sessions') return <ConsoleSessions projectId={projectId} />;
  return <Empty title="There is no such list of people" />;
}
