import { chmodSync, type Stats, statSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandFailure } from './failure.ts';
import { note } from './output.ts';
import { replaceFile } from './replace.ts';

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly organizationId: string;
}

export interface Profile {
  readonly url: string;
  readonly credential: string;
  /** The project that `portico use` has chosen. */
  readonly project?: Project;
}

type Profiles = Readonly<Record<string, Profile>>;

const pathOf = (): string => join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'portico', 'profiles.json');

/** The stored profiles, by name. */
export async function readProfiles(): Promise<Profiles> {
  const path = pathOf();
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return {};
  closeToOthers(path, stats);
  try {
    const { profiles } = JSON.parse(await readFile(path, 'utf8')) as { profiles: Profiles };
    const isWhole = ({ url, credential }: Profile) => URL.canParse(url) && typeof credential === 'string';
    if (!Object.values(profiles).every(isWhole)) throw new TypeError('a profile is not whole');
    return Object.assign(Object.create(null), profiles);
  } catch {
    throw new CommandFailure(`${path} cannot be read as profiles: mend it, or remove it and log in again.`);
  }
}

/** Stores a profile, or removes it if null; the others are unchanged. Returns the path of the file. */
export async function changeProfile(name: string, profile: Profile | null): Promise<string> {
  const path = pathOf();
  const profiles: Record<string, Profile> = { ...(await readProfiles()) };
  if (profile) profiles[name] = profile;
  else delete profiles[name];
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  chmodSync(dirname(path), 0o700);
  // Other users can read neither the file nor its draft.
  await replaceFile(path, `${JSON.stringify({ profiles }, null, 2)}\n`, 0o600);
  return path;
}

function closeToOthers(path: string, { mode, uid }: Stats): void {
  if (process.platform === 'win32') return;
  if (uid !== process.getuid?.()) throw new CommandFailure(`${path} belongs to another user: it is not read.`);
  if ((mode & 0o077) === 0) return;
  chmodSync(path, 0o600);
  note(`${path} was open to other users of this machine. It is closed now; if any of them is not trusted, revoke what it holds.`);
}
