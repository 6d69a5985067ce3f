import { useQuery } from '@apollo/client/react';
import { Dialog, DialogProvider, useDialogStore } from '@ariakit/react';
import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { graphql, type ResultOf } from '../graphql/graphql.ts';
import type { Failure } from '../graphql/link.ts';
import { Boundary } from '../parts/boundary.tsx';
import { findPage, isFocusFree } from '../parts/focus.ts';
import { Query } from '../parts/query.tsx';
import { Connection } from './connection.tsx';
import { recallProject, rememberProject } from './lastproject.ts';
import { Menu } from './menu.tsx';
import { Person } from './person.tsx';
import { Search } from './search.tsx';
import { Switcher } from './switcher.tsx';

const FrameQuery = graphql(`
  query Frame($id: ID!) {
    viewer {
      id
      name
      email
    }
    project(id: $id) {
      id
      name
      role
      unreadNotificationCount
      organization {
        id
        name
      }
    }
  }
`);

const ViewerQuery = graphql(`
  query FrameViewer {
    viewer {
      id
      name
      email
    }
  }
`);

type FrameProject = NonNullable<ResultOf<typeof FrameQuery>['project']>;

/** The layout around every page: project switcher, menu, search, connection state and the signed-in person. */
export function Frame({ projectId, children }: { projectId: string | null; children: ReactNode }) {
  if (!projectId) {
    return (
      <Query document={ViewerQuery} variables={{}} frame={frameProblem}>
        {({ viewer }) => (
          <Shell project={null} person={viewer}>
            {children}
          </Shell>
        )}
      </Query>
    );
  }
  return (
    <Query document={FrameQuery} variables={{ id: projectId }} frame={frameProblem}>
      {({ viewer, project }) => (
        <Shell project={project} person={viewer}>
          {children}
        </Shell>
      )}
    </Query>
  );
}

/** A project that the viewer cannot see still has the frame, so that the viewer can navigate elsewhere. */
const frameProblem = (problem: ReactNode, failure: Failure) => <ProblemFrame problem={problem} failure={failure} />;

function ProblemFrame({ problem, failure: { code } }: { problem: ReactNode; failure: Failure }) {
  useEffect(() => {
    if (code === 'not_found') rememberProject(null);
  }, [code]);
  // While the server is away, only what has been read before is shown.
  const { data } = useQuery(ViewerQuery, { fetchPolicy: code === 'not_found' ? 'cache-first' : 'cache-only' });
  return (
    <Shell project={null} person={data?.viewer ?? null}>
      {problem}
    </Shell>
  );
}

interface ShellProps {
  readonly project: FrameProject | null;
  readonly person: { readonly name: string; readonly email: string } | null;
  readonly children: ReactNode;
}

function Shell({ project, person, children }: ShellProps) {
  const drawer = useDialogStore();
  const [path] = useLocation();
  const unread = project?.unreadNotificationCount ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when another page has been chosen.
  useEffect(() => drawer.hide(), [path]);
  useEffect(() => {
    if (project) rememberProject(project.id);
  }, [project]);
  const page = describePage(project?.name ?? null, path);
  useTitle(unread, page);
  useFocus(path);
  const menu = (
    <>
      <Switcher project={project} />
      <Menu projectId={project?.id ?? recallProject()} unread={unread} />
    </>
  );
  return (
    <div className="frame">
      <a className="skip" href="#main">
        To the page
      </a>
      <div className="side">{menu}</div>
      <header className="top">
        <DialogProvider store={drawer}>
          <button type="button" className="button icon drawer-button" aria-label="Menu" onClick={drawer.show}>
            ☰
          </button>
          <Dialog className="drawer" aria-label="Menu" backdrop={<div className="backdrop" />}>
            {menu}
          </Dialog>
        </DialogProvider>
        <Search projectId={project?.id ?? null} />
        {project && <Connection />}
        <Person person={person} role={project?.role ?? null} />
      </header>
      {/* Read out when another page has come, as the title of the document is not. */}
      <p className="hidden" role="status">
        {page}
      </p>
      <main id="main" tabIndex={-1}>
        <Boundary path={path}>{children}</Boundary>
      </main>
    </div>
  );
}

/** `Notifications · Production · Portico`. */
function describePage(project: string | null, path: string): string {
  const [, , , section = project ? 'overview' : path.split('/')[1]] = project ? path.split('/') : ['', '', '', path.split('/')[1]];
  const name = section ? section[0]?.toUpperCase() + section.slice(1) : '';
  return [name, project, 'Portico'].filter(Boolean).join(' · ');
}

/** `(3) Notifications · Production · Portico`. */
function useTitle(unread: number, page: string) {
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ''}${page}`;
  }, [unread, page]);
}

/**
 * The element that led to another page is often gone with the one before, such as a row: then the page has the focus, as after a
 * click on a link.
 */
function useFocus(path: string) {
  const last = useRef(path);
  useEffect(() => {
    if (path !== last.current && isFocusFree()) findPage()?.focus({ preventScroll: true });
    last.current = path;
  }, [path]);
}
