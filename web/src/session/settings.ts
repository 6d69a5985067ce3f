/** A person of the demo, whose session is one click away. */
export interface DemoPerson {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

/** How one can sign in at this server: `GET /desk/settings`. */
export interface Settings {
  /** Null where there is no demo, or none for this machine. */
  readonly demo: { readonly people: readonly DemoPerson[]; readonly project_id: string } | null;
  readonly identity_provider: { readonly issuer: string; readonly client_id: string; readonly audience: string } | null;
}

let settings: Promise<Settings> | null = null;

export function loadSettings(): Promise<Settings> {
  settings ??= ask('/desk/settings').catch((failure) => {
    settings = null;
    throw failure;
  });
  return settings;
}

/** A session of a person of the demo: `POST /desk/demo`. */
export function askDemo(userId: string): Promise<{ token: string; expires: string }> {
  return ask('/desk/demo', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user_id: userId }) });
}

async function ask(path: string, init: RequestInit = {}) {
  const response = await fetch(path, init);
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.detail ?? `The server answered ${response.status}.`);
  return body;
}
