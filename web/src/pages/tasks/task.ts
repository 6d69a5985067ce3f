import type { ResultOf } from '../../graphql/graphql.ts';
import { graphql } from '../../graphql/graphql.ts';
import type { Sort } from '../../parts/column.ts';

export const TaskFields = graphql(`
  fragment TaskFields on Task {
    id
    kind
    status
    created
    started
    finished
    error
    instanceId
    instance {
      id
      name
    }
  }
`);

export type TaskRow = ResultOf<typeof TaskFields>;

export const taskStatuses = ['pending', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export const taskSorts = ['created', 'status'] as const;
export const newestFirst: Sort<'created'> = { field: 'created', direction: 'desc' };
