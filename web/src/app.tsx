import { type ReactNode, Suspense } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';
import { Frame } from './frame/frame.tsx';
import { ThemeProvider } from './frame/theme.tsx';
import { LiveProvider } from './live/live.tsx';
import { Home } from './pages/home/home.tsx';
import { Overview } from './pages/overview/overview.tsx';
import { Callback, SignIn } from './pages/signin/signin.tsx';
import { Boundary } from './parts/boundary.tsx';
import { Coming, lazyPage } from './parts/lazy.tsx';
import { Empty } from './parts/states.tsx';
import { ToastProvider } from './parts/toast.tsx';
import { DeskProvider, useDoorway } from './session/desk.tsx';

// Pages other than the first are loaded on demand.
const Notifications = lazyPage(() => import('./pages/notifications/notifications.tsx'));
const Instances = lazyPage(() => import('./pages/instances/instances.tsx'));
const Instance = lazyPage(() => import('./pages/instance/instance.tsx'));
const Tasks = lazyPage(() => import('./pages/tasks/tasks.tsx'));
const Storage = lazyPage(() => import('./pages/storage/storage.tsx'));
const Dashboards = lazyPage(() => import('./pages/dashboards/dashboards.tsx'));
const Dashboard = lazyPage(() => import('./pages/dashboard/dashboard.tsx'));
const People = lazyPage(() => import('./pages/people/people.tsx'));
const Keys = lazyPage(() => import('./pages/keys/keys.tsx'));
const Developers = lazyPage(() => import('./pages/developers/developers.tsx'));

export function App() {
  const [path] = useLocation();
  return (
    <ThemeProvider>
      <ToastProvider>
        <DeskProvider>
          {/* For what throws outside of a page: the frame has another one for its page. */}
          <Boundary path={path} frame={(problem) => <main>{problem}</main>}>
            <Routes />
          </Boundary>
        </DeskProvider>
      </ToastProvider>
    </ThemeProvider>
  );
}

function Routes() {
  const [path] = useLocation();
  const written = path.toLowerCase();
  // Ids are compared as the server writes them, in small letters; an address from elsewhere may have capitals.
  if (path !== written) return <Redirect to={written + location.search + location.hash} replace />;
  return (
    <Switch>
      <Route path="/signin/callback" component={Callback} />
      <Route path="/signin" component={SignIn} />
      <Route path="/projects/:projectId/*?">
        {({ projectId }) => <SignedIn>{<ProjectPages key={projectId} projectId={projectId} />}</SignedIn>}
      </Route>
      <Route>
        <SignedIn>
          <Switch>
            <Route path="/" component={Home} />
            <Route path="/keys">{page(<Keys />)}</Route>
            <Route path="/developers/*?">{page(<Developers projectId={null} />)}</Route>
            <Route>
              <Frame projectId={null}>
                <NotThere />
              </Frame>
            </Route>
          </Switch>
        </SignedIn>
      </Route>
    </Switch>
  );
}

/** Redirects to the sign-in page, which leads back here, if nobody is signed in. */
function SignedIn({ children }: { children: ReactNode }) {
  const { desk } = useDoorway();
  const [path] = useLocation();
  if (desk) return children;
  const here = path + location.search + location.hash;
  return <Redirect to={here === '/' ? '/signin' : `/signin?to=${encodeURIComponent(here)}`} replace />;
}

function ProjectPages({ projectId }: { projectId: string }) {
  return (
    <LiveProvider projectId={projectId}>
      <Frame projectId={projectId}>
        <Suspense fallback={<Coming />}>
          <Switch>
            <Route path="/projects/:projectId">
              <Overview projectId={projectId} />
            </Route>
            <Route path="/projects/:projectId/notifications">
              <Notifications projectId={projectId} />
            </Route>
            <Route path="/projects/:projectId/instances">
              <Instances projectId={projectId} />
            </Route>
            <Route path="/projects/:projectId/instances/:id/:tab?">
              {({ id, tab }) => <Instance key={id} projectId={projectId} id={id} tab={tab ?? 'facts'} />}
            </Route>
            <Route path="/projects/:projectId/tasks">
              <Tasks projectId={projectId} />
            </Route>
            <Route path="/projects/:projectId/storage/:kind?">
              {({ kind }) => <Storage key={kind} projectId={projectId} kind={kind ?? 'volumes'} />}
            </Route>
            <Route path="/projects/:projectId/dashboards">
              <Dashboards projectId={projectId} />
            </Route>
            <Route path="/projects/:projectId/dashboards/:id">{({ id }) => <Dashboard key={id} projectId={projectId} id={id} />}</Route>
            <Route path="/projects/:projectId/people/:tab?">{({ tab }) => <People projectId={projectId} tab={tab ?? 'members'} />}</Route>
            <Route path="/projects/:projectId/developers/*?">
              <Developers projectId={projectId} />
            </Route>
            <Route>
              <NotThere />
            </Route>
          </Switch>
        </Suspense>
      </Frame>
    </LiveProvider>
  );
}

function page(content: ReactNode) {
  return (
    <Frame projectId={null}>
      <Suspense fallback={<Coming />}>{content}</Suspense>
    </Frame>
  );
}

const NotThere = () => (
  <Empty title="There is no such page">
    <p>The address may have been cut short. The menu leads to all that there is.</p>
  </Empty>
);
