import { toJsonText } from '../../graphql/exact.ts';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { pretty, type Saved } from './content.ts';

export const DashboardQuery = graphql(`
  query Dashboard($projectId: ID!, $id: ID!) {
    viewer {
      id
    }
    project(id: $projectId) {
      id
      role
      organization {
        id
      }
      dashboard(id: $id) {
        id
        name
        description
        isDefault
        isPublic
        jsonText: widgets
        version
        created
        modified
        createdById
        createdBy {
          id
          name
        }
      }
    }
  }
`);

export const PatchDashboard = graphql(`
  mutation PatchDashboard($input: PatchDashboardInput!) {
    patchDashboard(input: $input) {
      dashboard {
        id
        name
        description
        isDefault
        isPublic
        jsonText: widgets
        version
        modified
        projectId
      }
    }
  }
`);

export const DeleteDashboard = graphql(`
  mutation DeleteDashboard($input: DeleteDashboardInput!) {
    deleteDashboard(input: $input) {
      deletedId
    }
  }
`);

type Project = NonNullable<ResultOf<typeof DashboardQuery>['project']>;
export type Dashboard = NonNullable<Project['dashboard']>;

/** The ids by which every mutation names a dashboard. */
export interface Place {
  readonly organizationId: string;
  readonly projectId: string;
  readonly id: string;
}

export type Role = Project['role'];

export function savedOf(dashboard: Omit<Saved, 'widgets'> & { readonly jsonText: unknown }): Saved {
  const { name, description, isDefault, isPublic, version, jsonText } = dashboard;
  return { name, description, isDefault, isPublic, version, widgets: pretty(toJsonText(jsonText)) };
}

/** Admins may edit all dashboards, members their own. */
export const mayEdit = (role: Role, isOwn: boolean): boolean => role === 'admin' || (role === 'member' && isOwn);
