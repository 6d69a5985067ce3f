import { type FormEvent, useCallback, useEffect, useRef, useState } from 'react';
import { Redirect, useLocation } from 'wouter';
import { type Failure, toFailure } from '../../graphql/link.ts';
import { isReachable, reloadDocument } from '../../parts/chunk.ts';
import { Problem } from '../../parts/states.tsx';
import { useDoorway } from '../../session/desk.tsx';
import { loadProvider, signInDemo } from '../../session/renewal.ts';
import { readExpiry, type Session } from '../../session/session.ts';
import { loadSettings, requestJson, type Settings } from '../../session/settings.ts';

/** Where to go after signing in: a page of the desk, never another host. */
function readTarget(): string {
  const to = new URLSearchParams(location.search).get('to') ?? '/';
  // A browser drops tabs and line breaks in a URL, and reads a backslash as a slash.
  const url = URL.canParse(to, location.origin) ? new URL(to, location.origin) : null;
  // A path that begins with two slashes would name a host.
  return url?.origin === location.origin && !url.pathname.startsWith('//') ? url.pathname + url.search + url.hash : '/';
}

export function SignIn() {
  const { desk, reason, signIn } = useDoorway();
  const { settings, failure, load } = useSettings();
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const isShown = useRef(false);
  useEffect(() => {
    document.title = 'Sign in · Portico';
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  if (desk) return <Redirect to={readTarget()} replace />;

  const attempt = async (work: () => Promise<Session | null>) => {
    setBusy(true);
    setProblem(null);
    try {
      const session = await work();
      // A late response signs nobody in who has left the page.
      if (session && isShown.current) signIn(session);
    } catch (failure) {
      setProblem((failure as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const paste = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const credential = String(new FormData(event.currentTarget).get('credential') ?? '').trim();
    attempt(() => checkCredential(credential));
  };
  return (
    <main className="signin" id="main">
      <h1>Portico</h1>
      <p>Notifications, dashboards, instances and their consoles: what a project runs, and what happens to it.</p>
      {reason && <p role="alert">Your session has ended. Sign in again to go on where you were.</p>}
      {problem && (
        <p role="alert" className="field-error">
          {problem}
        </p>
      )}
      {failure && <Problem failure={failure} retry={load} />}
      {settings?.demo && (
        <section>
          <h2>Look around</h2>
          <p>This server has demo data. Be one of its people:</p>
          <div className="people">
            {settings.demo.people.map(({ id, name, email }) => (
              <button key={id} type="button" className="button" disabled={isBusy} onClick={() => attempt(() => signInDemo(id))}>
                <strong>{name}</strong>
                <small>{email}</small>
              </button>
            ))}
          </div>
        </section>
      )}
      {settings?.identity_provider && (
        <section>
          <h2>With your account</h2>
          <button type="button" className="button primary" disabled={isBusy} onClick={() => attempt(leave)}>
            Continue at {new URL(settings.identity_provider.issuer).host}
          </button>
        </section>
      )}
      <section>
        <h2>With a key or a token</h2>
        <form onSubmit={paste}>
          <label>
            API key or session token
            <input className="input" name="credential" type="password" autoComplete="off" required spellCheck={false} />
          </label>
          <button type="submit" className="button" disabled={isBusy}>
            Sign in
          </button>
        </form>
        <p>
          <small>It stays in this tab, and is forgotten when the tab is closed or you sign out.</small>
        </p>
      </section>
      <footer>
        For programs: <a href="/guides">guides</a>, <a href="/docs">reference of v1</a>, <a href="/graphql">GraphiQL</a>,{' '}
        <a href="/v1/openapi.json">OpenAPI</a>, <a href="/v1/asyncapi.json">AsyncAPI</a>
      </footer>
    </main>
  );
}

/** The ways to sign in at this server, or why they are unknown. */
function useSettings() {
  const [settings, setSettings] = useState<Settings | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const load = useCallback(() => {
    loadSettings().then(
      (loaded) => {
        setSettings(loaded);
        setFailure(null);
      },
      (error: unknown) => setFailure(toFailure(error)),
    );
  }, []);
  useEffect(load, [load]);
  return { settings, failure, load };
}

async function leave(): Promise<null> {
  const { leaveForProvider } = await loadProvider().catch(async () => {
    if (await isReachable()) return reloadDocument();
    throw new Error('The server does not answer.');
  });
  await leaveForProvider(readTarget());
  return null;
}

/** Checks a pasted credential with the server, and returns the session. */
async function checkCredential(credential: string): Promise<Session> {
  if (!/^[\w.~+/=-]+$/.test(credential)) throw new Error('A key or token has letters, digits and - . _ ~ + / = only.');
  const { body } = await requestJson('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
    body: JSON.stringify({ query: '{ viewer { id } }' }),
  });
  if (!body.data?.viewer) throw new Error(body.errors?.[0]?.message ?? 'The credential is not valid.');
  const expires = readExpiry(credential);
  return { kind: expires === null ? 'key' : 'token', credential, expires, renewal: null };
}

/** The redirect URI of the identity provider. */
export function Callback() {
  const { signIn } = useDoorway();
  const [, navigate] = useLocation();
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const address = new URL(location.href);
    // Keeps the authorization code out of the browser's history.
    history.replaceState(null, '', address.pathname);
    let isShown = true;
    comeBackOnce(address).then(
      ({ session, returnTo }) => {
        if (!isShown) return;
        signIn(session);
        navigate(returnTo, { replace: true });
      },
      (failure: Error) => setProblem(failure.message),
    );
    return () => {
      isShown = false;
    };
  }, [signIn, navigate]);
  return (
    <main className="signin" id="main">
      <h1>Portico</h1>
      {problem ? (
        <p role="alert">
          Signing in did not work: {problem} <a href="/signin">Try again</a>
        </p>
      ) : (
        <p role="status">Signing in …</p>
      )}
    </main>
  );
}

let pending: Promise<{ session: Session; returnTo: string }> | null = null;
/** The code can be exchanged only once, and an effect may run twice. */
const comeBackOnce = (address: URL) => (pending ??= loadProvider().then(({ comeBack }) => comeBack(address)));
