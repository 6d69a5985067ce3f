import { Link } from 'wouter';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { toPage } from '../../parts/address.ts';
import type { Column } from '../../parts/column.ts';
import { type Connection, useEndless } from '../../parts/pages.ts';
import { Query } from '../../parts/query.tsx';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';

const ProjectMembersQuery = graphql(`
  query ProjectMembers($id: ID!, $first: Int, $after: String) {
    project(id: $id) {
      id
      members(first: $first, after: $after) {
        nodes {
          role
          user {
            id
            name
            email
          }
        }
        pageInfo {
          endCursor
          hasNextPage
        }
        totalCount
      }
    }
  }
`);

const OrganizationOfProjectQuery = graphql(`
  query OrganizationOfProject($id: ID!) {
    project(id: $id) {
      id
      organization {
        id
        name
      }
    }
  }
`);

const OrganizationMembersQuery = graphql(`
  query OrganizationMembers($id: ID!, $first: Int, $after: String) {
    organization(id: $id) {
      id
      members(first: $first, after: $after) {
        nodes {
          role
          user {
            id
            name
            email
          }
        }
        pageInfo {
          endCursor
          hasNextPage
        }
        totalCount
      }
    }
  }
`);

type ProjectRole = NonNullable<ResultOf<typeof ProjectMembersQuery>['project']>['members']['nodes'][number]['role'];
type OrganizationRole = NonNullable<ResultOf<typeof OrganizationMembersQuery>['organization']>['members']['nodes'][number]['role'];

/** From the least to the most privileged. */
const projectRoles: Readonly<Record<ProjectRole, string>> = {
  viewer: 'reads all of it, marks notifications as read, follows the feed',
  member: 'reads all of it, makes dashboards and changes their own, opens consoles',
  admin: 'does all of this, also with dashboards and console sessions of others, and publishes notifications',
};
const organizationRoles: Readonly<Record<OrganizationRole, string>> = {
  member: 'sees the projects that list them, as what they are listed',
  admin: 'is an admin of each of its projects',
  owner: 'is an admin of each of its projects, and owns it',
};

interface Row {
  readonly id: string;
  readonly role: string;
  readonly name: string;
  readonly email: string;
}

/** A member's row has the id of the user. */
function toRows(
  connection: Connection<{ role: string; user: { id: string; name: string; email: string } }> | undefined,
): Connection<Row> | null {
  if (!connection) return null;
  return { ...connection, nodes: connection.nodes.map(({ role, user: { id, name, email } }) => ({ id, role, name, email })) };
}

const columns: ReadonlyArray<Column<Row>> = [
  { name: 'name', title: 'Name', width: 'minmax(7rem, 1fr)', cell: ({ name }) => <bdi>{name}</bdi> },
  { name: 'email', title: 'E-mail', width: 'minmax(7rem, 1.3fr)', cell: ({ email }) => <bdi title={email}>{email}</bdi> },
  { name: 'role', title: 'Role', width: '5rem', cell: ({ role }) => role },
];

export function ProjectMembers({ projectId }: { projectId: string }) {
  const list = useEndless({
    document: ProjectMembersQuery,
    variables: { id: projectId },
    parent: { __typename: 'Project', id: projectId },
    field: 'members',
    pick: ({ project }) => toRows(project?.members),
  });
  return (
    <>
      <p>Owners and admins of the organization are admins of the project too.</p>
      <DataTable label="Members of the project" list={list} columns={columns} empty={<Empty title="Nobody is in this project" />} />
      <Roles projectId={projectId} title="What a role in the project may do" roles={projectRoles} />
    </>
  );
}

export function OrganizationMembers({ projectId }: { projectId: string }) {
  return (
    <Query document={OrganizationOfProjectQuery} variables={{ id: projectId }}>
      {({ project }) => project && <Members projectId={projectId} id={project.organization.id} name={project.organization.name} />}
    </Query>
  );
}

function Members({ projectId, id, name }: { projectId: string; id: string; name: string }) {
  const list = useEndless({
    document: OrganizationMembersQuery,
    variables: { id },
    parent: { __typename: 'Organization', id },
    field: 'members',
    pick: ({ organization }) => toRows(organization?.members),
  });
  return (
    <>
      <p>
        Everybody who belongs to <bdi>{name}</bdi>.
      </p>
      <DataTable
        label="Members of the organization"
        list={list}
        columns={columns}
        empty={<Empty title="Nobody is in this organization" />}
      />
      <Roles projectId={projectId} title="What a role in the organization may do" roles={organizationRoles} />
    </>
  );
}

function Roles({ projectId, title, roles }: { projectId: string; title: string; roles: Readonly<Record<string, string>> }) {
  return (
    <section className="roles" aria-labelledby="roles">
      <h2 id="roles">{title}</h2>
      <dl className="facts">
        {Object.entries(roles).map(([role, may]) => (
          <div key={role}>
            <dt>{role}</dt>
            <dd>{may}</dd>
          </div>
        ))}
      </dl>
      <p>
        Roles are given by whoever runs this server. All of it:{' '}
        <Link href={toPage(projectId, 'developers/authentication')}>Authentication</Link>.
      </p>
    </section>
  );
}
