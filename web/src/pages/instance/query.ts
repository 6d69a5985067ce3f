import { graphql, type ResultOf } from '../../graphql/graphql.ts';

export const InstanceQuery = graphql(`
  query Instance($projectId: ID!, $id: ID!) {
    project(id: $projectId) {
      id
      name
      role
      organizationId
      organization {
        id
        name
      }
      instance(id: $id) {
        id
        name
        status
        plan
        region
        vcpu
        ramMb
        storageGb
        hypervisor
        throttled
        cancellationAt
        dailyBackup
        created
        modified
      }
    }
  }
`);

type InstanceProject = NonNullable<ResultOf<typeof InstanceQuery>['project']>;

/** The props of each tab. */
export interface TabProps {
  readonly project: InstanceProject;
  readonly instance: NonNullable<InstanceProject['instance']>;
}
