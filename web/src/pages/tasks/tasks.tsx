import { graphql } from '../../graphql/graphql.ts';
import { useAddress } from '../../parts/address.ts';
import { Chips, Filters, keepKnown, useSort } from '../../parts/filters.tsx';
import { useListAddress } from '../../parts/listaddress.ts';
import { type Connection, useEndless } from '../../parts/pages.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { useUpdates } from '../../parts/updates.ts';
import { toTaskColumns } from './columns.tsx';
import { TaskPanel } from './panel.tsx';
import { newestFirst, TaskFields, type TaskRow, taskSorts, taskStatuses } from './task.ts';

const TasksQuery = graphql(
  `
  query Tasks($id: ID!, $filter: TaskFilter, $orderBy: TaskOrder, $first: Int, $after: String, $isOfDay: Boolean!) {
    project(id: $id) {
      id
      computeOverview @include(if: $isOfDay) {
        tasksByStatus {
          status
          count
        }
      }
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
`,
  [TaskFields],
);

const attentions = ['failed_24h', 'stuck'] as const;
const attentionTitles = { failed_24h: 'failed within 24 h', stuck: 'stuck for over 1 h' };
const names = ['status', 'attention', 'created'];

export default function Tasks({ projectId }: { projectId: string }) {
  const { get, all, set } = useAddress();
  const [sort, setSort] = useSort(taskSorts, newestFirst);
  const statuses = keepKnown(all('status'), taskStatuses);
  const attention = keepKnown(all('attention'), attentions)[0];
  // The server counts the tasks of the last 24 h but has no filter for them: they are the first rows, sorted newest first.
  const isOfDay = get('created') === '24h' && !attention;
  const orderBy = isOfDay ? newestFirst : sort;
  const list = useEndless({
    document: TasksQuery,
    variables: { id: projectId, filter: { statuses, attention }, orderBy, isOfDay },
    parent: { __typename: 'Project', id: projectId },
    field: 'tasks',
    pick: ({ project }, from) => {
      const counts = project?.computeOverview?.tasksByStatus.filter(
        ({ status }) => statuses.length === 0 || statuses.some((one) => one === status),
      );
      return (
        project &&
        (counts
          ? truncate(
              project.tasks,
              from,
              counts.reduce((sum, { count }) => sum + count, 0),
            )
          : project.tasks)
      );
    },
  });
  useUpdates(list);
  useListAddress(projectId, 'tasks');
  const isFiltered = names.some((name) => get(name));
  return (
    <>
      <h1>Tasks</h1>
      <Filters names={names}>
        <Chips label="Status" name="status" values={taskStatuses} hasDots />
        <Chips label="Attention" name="attention" values={attentions} titles={attentionTitles} isSingle without="created" />
        <Chips label="Created" name="created" values={['24h']} titles={{ '24h': 'within 24 h' }} isSingle without="attention" />
      </Filters>
      <DataTable
        label="Tasks"
        list={list}
        columns={toTaskColumns(projectId)}
        sort={orderBy}
        onSort={isOfDay ? undefined : setSort}
        onOpen={({ id }) => set({ open: id })}
        empty={isFiltered ? <NoneSuch /> : <NoneYet />}
      />
      <TaskPanel projectId={projectId} />
    </>
  );
}

/** Truncates a page that begins at index `from`, so that the list has `totalCount` rows. */
function truncate({ nodes, pageInfo }: Connection<TaskRow>, from: number, totalCount: number): Connection<TaskRow> {
  const left = Math.max(0, totalCount - from);
  return {
    nodes: nodes.slice(0, left),
    pageInfo: { ...pageInfo, hasNextPage: pageInfo.hasNextPage && left > nodes.length },
    totalCount,
  };
}

const NoneSuch = () => (
  <Empty title="No task is like that">
    <p>That is good news where you looked for failures. Take a filter out to see the others.</p>
  </Empty>
);

const NoneYet = () => (
  <Empty title="There are no tasks yet">
    <p>Whatever is done to the instances of this project (started, resized, backed up …) is listed here, with how it went.</p>
  </Empty>
);
