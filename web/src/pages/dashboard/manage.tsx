import { useApolloClient } from '@apollo/client/react';
import { Dialog } from '@ariakit/react';
import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { graphql } from '../../graphql/graphql.ts';
import { randomKey } from '../../graphql/key.ts';
import { type Failure, toFailure } from '../../graphql/link.ts';
import { toPage } from '../../parts/address.ts';
import { AllNotes, type ReadParts, readPages, useAll } from '../../parts/all.tsx';
import { useMounted } from '../../parts/mounted.ts';
import { useToast } from '../../parts/toast.tsx';
import { DeleteDashboard, PatchDashboard, type Place } from './document.ts';
import { Refusal } from './refusal.tsx';

const ProjectsQuery = graphql(`
  query DashboardProjects($id: ID!, $after: String) {
    project(id: $id) {
      id
      organization {
        id
        projects(first: 100, after: $after) {
          nodes {
            id
            name
            role
          }
          pageInfo {
            endCursor
            hasNextPage
          }
        }
      }
    }
  }
`);

interface TargetProject {
  readonly id: string;
  readonly name: string;
  readonly role: string;
}

/** All projects of the organization that the project belongs to. */
const readProjectsBeside = (id: string): ReadParts<TargetProject> =>
  async function* (apollo, fetchPolicy) {
    yield* readPages(async (after) => {
      const { data } = await apollo.query({ query: ProjectsQuery, variables: { id, after }, fetchPolicy });
      return data?.project?.organization.projects;
    });
  };

/** The words that explain a rejected move or deletion: there is no text of one's own that could be lost. */
const refusalWords = (done: string, again: string): Readonly<Record<string, string>> => ({
  conflict: `It has been changed meanwhile, and was not ${done}. Look at what changed, or ${again} as it is now.`,
  not_found: `It was not ${done}: it has been deleted or moved already, or you may not see it any more.`,
  unreachable: `The server does not answer. It is not known whether it was ${done}: look again in a moment.`,
  credential_unavailable: `The identity provider does not answer, and it was not ${done}. Try again in a moment.`,
  service_unavailable: `The database is away, and it was not ${done}. Try again in a moment.`,
});
const moveWords = refusalWords('moved', 'move it');
const deleteWords = refusalWords('deleted', 'delete it');

interface ManageProps {
  readonly place: Place;
  readonly name: string;
  readonly version: number;
  readonly isDirty: boolean;
  refetch(): void;
  /** The dashboard has been moved or deleted. */
  onGone(): void;
}

/** Moving and deleting, which take effect at once and are not part of the form. */
export function Manage(props: ManageProps) {
  const [isDeleting, setDeleting] = useState(false);
  return (
    <section className="manage" aria-labelledby="manage">
      <h2 id="manage">Move or delete</h2>
      {props.isDirty && <p>Save or discard your changes first.</p>}
      <div className="actions">
        <Move {...props} />
        <button type="button" className="button danger end" disabled={props.isDirty} onClick={() => setDeleting(true)}>
          Delete …
        </button>
      </div>
      <Delete {...props} isOpen={isDeleting} close={() => setDeleting(false)} />
    </section>
  );
}

function Move({ place, name, version, isDirty, refetch, onGone }: ManageProps) {
  const apollo = useApolloClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const isMounted = useMounted();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [target, setTarget] = useState('');
  const all = useAll(useMemo(() => readProjectsBeside(place.projectId), [place.projectId]));
  const others = all.items?.filter(({ id, role }) => id !== place.projectId && role !== 'viewer') ?? [];
  const hasNone = others.length === 0 && !all.isReading && !all.isCut && !all.failure;
  if (hasNone) return <span>There is no other project of this organization in which you may edit dashboards.</span>;

  const move = async () => {
    if (isBusy) return;
    setBusy(true);
    const input = { ...place, project: target, expectedVersion: version, idempotencyKey: randomKey() };
    setFailure(null);
    try {
      await apollo.mutate({ mutation: PatchDashboard, variables: { input } });
      onGone();
      toast(`“${name}” is in ${others.find(({ id }) => id === target)?.name ?? 'the other project'} now.`);
      if (isMounted()) navigate(toPage(target, `dashboards/${place.id}`), { replace: true });
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
      refetch();
    }
  };
  const messages = failure?.fields.project ?? [];
  return (
    <>
      <label className="move">
        <span>Move to</span>
        <select className="input" value={target} disabled={isDirty} onChange={(event) => setTarget(event.target.value)}>
          <option value="">another project</option>
          {others.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button type="button" className="button" disabled={isDirty || !target} aria-disabled={isBusy} onClick={move}>
        Move
      </button>
      <AllNotes all={all} name="projects" />
      {messages.length > 0 && (
        <p className="field-error" role="alert">
          {messages.join(' ')}
        </p>
      )}
      {messages.length === 0 && <Refusal failure={failure} words={moveWords} />}
    </>
  );
}

function Delete({ place, name, version, refetch, onGone, isOpen, close }: ManageProps & { isOpen: boolean; close(): void }) {
  const apollo = useApolloClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const isMounted = useMounted();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const remove = async () => {
    if (isBusy) return;
    setBusy(true);
    const input = { ...place, expectedVersion: version, idempotencyKey: randomKey() };
    setFailure(null);
    try {
      await apollo.mutate({ mutation: DeleteDashboard, variables: { input } });
      onGone();
      toast(`“${name}” is deleted.`);
      if (isMounted()) navigate(toPage(place.projectId, 'dashboards'), { replace: true });
    } catch (error) {
      setFailure(toFailure(error));
      setBusy(false);
      refetch();
    }
  };
  const leave = () => {
    // The next question has no answer yet.
    setFailure(null);
    close();
  };
  return (
    <Dialog open={isOpen} onClose={leave} className="dialog" aria-labelledby="deleting" backdrop={<div className="backdrop" />}>
      <h2 id="deleting">
        Delete “<bdi>{name}</bdi>”?
      </h2>
      <p>It is gone for everyone in the project, and cannot be brought back.</p>
      <Refusal failure={failure} words={deleteWords} />
      <div className="actions">
        <button type="button" className="button danger" aria-disabled={isBusy} onClick={remove}>
          Delete it
        </button>
        <button type="button" className="button" onClick={leave}>
          Keep it
        </button>
      </div>
    </Dialog>
  );
}
