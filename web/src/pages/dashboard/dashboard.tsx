import { Link } from 'wouter';
import { toPage } from '../../parts/address.ts';
import { Id } from '../../parts/id.tsx';
import { Query } from '../../parts/query.tsx';
import { Time } from '../../parts/time.tsx';
import { type Dashboard as Board, DashboardQuery, mayEdit, type Role, savedOf } from './document.ts';
import { JsonEditor } from './editor.tsx';
import { useFollowing } from './following.ts';
import { Workbench } from './workbench.tsx';
import './dashboard.css';

export default function Dashboard({ projectId, id }: { projectId: string; id: string }) {
  return (
    <>
      <p>
        <Link href={toPage(projectId, 'dashboards')}>All dashboards</Link>
      </p>
      <Query document={DashboardQuery} variables={{ projectId, id }}>
        {({ viewer, project }, refetch) => {
          if (!viewer || !project?.dashboard) return null;
          const { dashboard, role, organization } = project;
          const isOwn = dashboard.createdById === viewer.id;
          return (
            <>
              <Follower read={refetch} />
              {mayEdit(role, isOwn) ? (
                <Workbench
                  place={{ organizationId: organization.id, projectId, id }}
                  viewerId={viewer.id}
                  dashboard={dashboard}
                  facts={<Facts dashboard={dashboard} />}
                  refetch={refetch}
                />
              ) : (
                <Shown dashboard={dashboard} role={role} />
              )}
            </>
          );
        }}
      </Query>
    </>
  );
}

function Follower({ read }: { read(): void }) {
  useFollowing(read);
  return null;
}

function Facts({ dashboard }: { dashboard: Board }) {
  const { id, version, createdBy, created, modified } = dashboard;
  return (
    <dl className="facts board-facts">
      <dt>Made by</dt>
      <dd>
        <bdi>{createdBy?.name ?? 'somebody who has left'}</bdi>, <Time value={created} />
      </dd>
      <dt>Version</dt>
      <dd>
        {version}, saved <Time value={modified} />
      </dd>
      <dt>Id</dt>
      <dd>
        <Id value={id} />
      </dd>
    </dl>
  );
}

/** The read-only view, for those who may not edit. */
function Shown({ dashboard, role }: { dashboard: Board; role: Role }) {
  const { name, description, isDefault, isPublic, widgets } = savedOf(dashboard);
  return (
    <>
      <h1>
        <bdi>{name}</bdi>
      </h1>
      <p className="note">
        {role === 'viewer'
          ? 'Your role “viewer” reads dashboards. Members change their own, admins all.'
          : 'Somebody else made this dashboard. Its maker and the admins change it.'}
      </p>
      <Facts dashboard={dashboard} />
      <dl className="facts board-facts">
        <dt>Description</dt>
        <dd className="board-text">{description ? <bdi>{description}</bdi> : 'none'}</dd>
        <dt>Default of the project</dt>
        <dd>{isDefault ? 'yes' : 'no'}</dd>
        <dt>Public</dt>
        <dd>{isPublic ? 'yes: everyone in the project sees it' : 'no: its maker and the admins see it'}</dd>
      </dl>
      <h2 id="widgets-title">Widgets</h2>
      <JsonEditor id="widgets" labelledBy="widgets-title" text={widgets} isReadOnly />
    </>
  );
}
