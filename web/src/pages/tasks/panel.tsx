import { Dialog, DialogDismiss, DialogHeading } from '@ariakit/react';
import { graphql, type ResultOf } from '../../graphql/graphql.ts';
import { useAddress } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import { Id } from '../../parts/id.tsx';
import { Query } from '../../parts/query.tsx';
import { Empty } from '../../parts/states.tsx';
import { ExactTime } from '../../parts/time.tsx';
import { Updates } from '../../parts/updates.ts';
import { Duration, TaskInstance } from './columns.tsx';
import { TaskFields } from './task.ts';
import './tasks.css';

const TaskQuery = graphql(
  `
    query Task($id: ID!) {
      node(id: $id) {
        __typename
        ... on Task {
          ...TaskFields
          project {
            id
          }
        }
      }
    }
  `,
  [TaskFields],
);

type Task = Extract<NonNullable<ResultOf<typeof TaskQuery>['node']>, { __typename: 'Task' }>;

/** The task that `?open=` in the URL names, beside the list. */
export function TaskPanel({ projectId }: { projectId: string }) {
  const { get, set } = useAddress();
  const id = get('open');
  if (!id) return null;
  return (
    <Dialog
      open
      onClose={() => set({ open: null }, { replace: true })}
      modal={false}
      portal={false}
      hideOnInteractOutside={false}
      className="panel"
      aria-label="Task"
    >
      <DialogDismiss className="button icon panel-close" aria-label="Close">
        ×
      </DialogDismiss>
      <Query key={id} document={TaskQuery} variables={{ id }}>
        {({ node }, refetch) => (
          <>
            <Updates update={refetch} />
            {node?.__typename === 'Task' && node.project.id === projectId ? (
              <Facts projectId={projectId} task={node} />
            ) : (
              <Empty title="There is no such task">
                <p>It is gone, or it belongs to another project.</p>
              </Empty>
            )}
          </>
        )}
      </Query>
    </Dialog>
  );
}

function Facts({ projectId, task }: { projectId: string; task: Task }) {
  const { id, kind, status, created, started, finished, error } = task;
  return (
    <>
      <DialogHeading className="panel-title">
        <bdi>{kind}</bdi>
      </DialogHeading>
      {error && (
        <pre className="task-error" dir="auto">
          {error}
        </pre>
      )}
      <dl className="facts">
        <dt>Status</dt>
        <dd>
          <Badge value={status} />
        </dd>
        <dt>Instance</dt>
        <dd>
          <TaskInstance projectId={projectId} task={task} />
        </dd>
        <dt>Created</dt>
        <dd>
          <ExactTime value={created} />
        </dd>
        <dt>Started</dt>
        <dd>{started ? <ExactTime value={started} /> : 'not yet'}</dd>
        <dt>Finished</dt>
        <dd>{finished ? <ExactTime value={finished} /> : 'not yet'}</dd>
        <dt>Duration</dt>
        <dd>
          <Duration {...task} />
        </dd>
        <dt>Id</dt>
        <dd>
          <Id value={id} />
        </dd>
      </dl>
    </>
  );
}
