import { isExposed } from '../credential.ts';
import { CommandFailure } from './failure.ts';
import { type Profile, readProfiles } from './profiles.ts';
import { findProject } from './projects.ts';
import { checkCredential } from './secret.ts';
import { Session } from './session.ts';

/** Options that every command accepts, before or after its name. */
export interface GlobalOptions {
  readonly profile: string;
  readonly url?: string;
  readonly project?: string;
  readonly plainHttp?: boolean;
  readonly json?: boolean;
}

/** Options override the environment, and the environment overrides the profile. */
export async function openSession(options: GlobalOptions): Promise<Session> {
  const { PORTICO_URL, PORTICO_CREDENTIAL, PORTICO_PROJECT } = process.env;
  const profile = await readProfiles().then(
    (profiles) => profiles[options.profile],
    (failure: unknown) => {
      // Without a profile, all that is missing is the project that it may name.
      if ((options.url || PORTICO_URL) && PORTICO_CREDENTIAL) return undefined;
      throw failure;
    },
  );
  const url = readUrl(options.url ?? (PORTICO_URL || profile?.url), options, profile);
  // A stored credential is sent only to the server that it was stored for.
  const isOfProfile = profile !== undefined && toBaseUrl(new URL(profile.url)) === url;
  const credential = PORTICO_CREDENTIAL || (isOfProfile && profile.credential);
  if (!credential) throw notLoggedIn(options, url, profile);
  const wanted = options.project ?? (PORTICO_PROJECT || null);
  const kept = isOfProfile ? profile.project : undefined;
  return new Session(url, checkCredential(credential.trim()), async (session) =>
    wanted === null && kept ? kept : findProject(session, wanted),
  );
}

/**
 * The base URL of a server, perhaps with a path, without a trailing slash. Plain HTTP to another machine has to be asked for, at least
 * once in a profile: a redirect to HTTPS is seen only after the credential was sent.
 */
export function readUrl(text: string | undefined, options: GlobalOptions, profile?: Profile): string {
  if (text === undefined) throw notLoggedIn(options);
  const url = URL.canParse(text) ? new URL(text) : null;
  // Such an address is not repeated, as it holds a secret.
  if (url?.username || url?.password) throw new CommandFailure('The address of a server holds no user name and no password.', 2);
  if (url?.search || url?.hash) throw new CommandFailure('The address of a server holds no query and no fragment.', 2);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new CommandFailure(`${text} is not the address of a server, such as https://api.example.com.`, 2);
  const isKept = profile !== undefined && new URL(profile.url).origin === url.origin;
  if (isExposed(url) && !options.plainHttp && !isKept)
    throw new CommandFailure(`${url.origin} has no TLS: your credential could be read on the way. Say https://, or --plain-http.`, 2);
  return toBaseUrl(url);
}

const toBaseUrl = ({ origin, pathname }: URL): string => origin + pathname.replace(/\/+$/, '');

function notLoggedIn({ profile: name }: GlobalOptions, url = '<address>', profile?: Profile): CommandFailure {
  const command = `portico login --url ${url}${name === 'default' ? '' : ` --profile ${name}`}`;
  return profile
    ? new CommandFailure(`The profile ${name} is for ${profile.url}: log in with “${command}”, or set PORTICO_CREDENTIAL.`)
    : new CommandFailure(`There is no profile ${name}: log in with “${command}”.`);
}
