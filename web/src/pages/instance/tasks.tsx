import { graphql } from '../../graphql/graphql.ts';
import { useAddress } from '../../parts/address.ts';
import { Chips, Filters, keepKnown, useSort } from '../../parts/filters.tsx';
import { useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { toTaskColumns } from '../tasks/columns.tsx';
import { TaskPanel } from '../tasks/panel.tsx';
import { newestFirst, TaskFields, taskSorts, taskStatuses } from '../tasks/task.ts';
import type { TabProps } from './query.ts';

const InstanceTasksQuery = graphql(
  `
    query InstanceTasks($projectId: ID!, $id: ID!, $filter: InstanceTaskFilter, $orderBy: TaskOrder, $first: Int, $after: String) {
      project(id: $projectId) {
        id
        instance(id: $id) {
          id
          tasks(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
            totalCount
            pageInfo {
              endCursor
              hasNextPage
            }
            nodes {
              ...TaskFields
            }
          }
        }
      }
    }
  `,
  [TaskFields],
);

const columns = toTaskColumns(null);

/** The tasks of the instance, with their outcome. */
export function InstanceTasks({ project, instance }: TabProps) {
  const { all, set } = useAddress();
  const [sort, setSort] = useSort(taskSorts, newestFirst);
  const statuses = keepKnown(all('status'), taskStatuses);
  const list = useEndless({
    document: InstanceTasksQuery,
    variables: { projectId: project.id, id: instance.id, filter: { statuses }, orderBy: sort },
    parent: { __typename: 'Instance', id: instance.id },
    field: 'tasks',
    pick: ({ project }) => project?.instance?.tasks,
  });
  useUpdates(list);
  return (
    <>
      <Filters names={['status']}>
        <Chips label="Status" name="status" values={taskStatuses} hasDots />
      </Filters>
      <DataTable
        label="Tasks of the instance"
        list={list}
        columns={columns}
        sort={sort}
        onSort={setSort}
        onOpen={({ id }) => set({ open: id })}
        empty={<Empty title={statuses.length > 0 ? 'No task of it has this status' : 'Nothing has been done to it yet'} />}
      />
      <TaskPanel projectId={project.id} />
    </>
  );
}
