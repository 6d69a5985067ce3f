import { toPage } from '../../parts/address.ts';
import { Empty } from '../../parts/states.tsx';
import { Tabs } from '../../parts/tabs.tsx';
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
      <Tabs label="People" tabs={tabs.map(([name, title]) => ({ name, title, to: toPage(projectId, `people/${name}`) }))} current={tab} />
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
