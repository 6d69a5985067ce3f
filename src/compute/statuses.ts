import { InstanceStatus, TaskStatus } from '../generated/prisma/enums.ts';

/** All statuses, in their sort order. */
export const instanceStatuses = Object.values(InstanceStatus);
export const taskStatuses = Object.values(TaskStatus);

/** Both conditions must match where both are given. An empty list does not filter. */
export interface StatusFilter<Status> {
  readonly status?: Status | null;
  readonly statuses?: readonly Status[] | null;
}

/** The statuses of instances that a filter selects: all but `deleted` where it names none. */
export function selectInstanceStatuses(filter: StatusFilter<InstanceStatus>): InstanceStatus[] {
  return selectStatuses(instanceStatuses, filter) ?? instanceStatuses.filter((status) => status !== 'deleted');
}

/** The statuses of tasks that a filter selects; null where it names none. */
export function selectTaskStatuses(filter: StatusFilter<TaskStatus>): TaskStatus[] | null {
  return selectStatuses(taskStatuses, filter);
}

function selectStatuses<Status>(all: readonly Status[], { status, statuses }: StatusFilter<Status>): Status[] | null {
  const named = statuses && statuses.length > 0 ? statuses : null;
  if (!status && !named) return null;
  return all.filter((candidate) => (!status || candidate === status) && (!named || named.includes(candidate)));
}
