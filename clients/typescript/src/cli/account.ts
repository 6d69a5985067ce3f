import type { Command } from 'commander';
import { isExposed } from '../credential.ts';
import { PorticoError } from '../error.ts';
import { CommandFailure } from './failure.ts';
import { type GlobalOptions, openSession, readUrl } from './options.ts';
import { note, writeLine, writeTable, writeValue } from './output.ts';
import { changeProfile, type Profile, type Project, readProfiles } from './profiles.ts';
import { findProject, listProjects } from './projects.ts';
import { readSecret } from './secret.ts';
import { Session } from './session.ts';

interface Viewer {
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

export function addAccount(program: Command): void {
  program
    .command('login')
    .description('keep an API key or a session token: asked for on the terminal, or read from standard input')
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const kept = (await readProfiles())[options.profile];
      const url = readUrl(options.url ?? (process.env.PORTICO_URL || kept?.url), options, kept);
      if (isExposed(new URL(url))) note(`What you send to ${url} can be read on the way: it has no TLS.`);
      const credential = await readSecret(`API key or session token for ${url}: `);
      const session = new Session(url, credential, (session) => findProject(session, options.project ?? null));
      const { viewer } = await session.query<{ viewer: Viewer }>('{ viewer { id name email } }').catch((failure: unknown) => {
        const isRejected = failure instanceof PorticoError && failure.code === 'not_authenticated';
        throw isRejected ? new CommandFailure(`${url} does not take it: it is wrong, revoked or expired. Nothing was kept.`) : failure;
      });
      const project = options.project === undefined ? await keepProject(session, kept) : await session.project();
      const path = await changeProfile(options.profile, { url, credential, ...(project && { project }) });
      if (options.json) return writeValue({ profile: options.profile, url, user: viewer });
      await writeLine(`You are ${viewer.name} (${viewer.email}) at ${url}.`);
      note(`Kept as the profile ${options.profile} in ${path}.`);
    });

  program
    .command('logout')
    .description('forget the credential of a profile')
    .action(async (_options: unknown, command: Command) => {
      const { profile, json } = command.optsWithGlobals<GlobalOptions>();
      const kept = (await readProfiles())[profile];
      if (!kept) throw new CommandFailure(`There is no profile ${profile}.`);
      await changeProfile(profile, null);
      if (json) return writeValue({ profile });
      await writeLine(`The profile ${profile} is forgotten.`);
      if (kept.credential.startsWith('sk-')) note('Its API key still counts: “portico keys revoke” ends it.');
    });

  program
    .command('projects')
    .description('list the projects that you may see')
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const projects = await listProjects(await openSession(options));
      if (options.json) return writeValue(projects);
      const rows = projects.map(({ id, name, role, organization }) => [name, organization.name, role, id]);
      await writeTable(['PROJECT', 'ORGANIZATION', 'ROLE', 'ID'], rows);
    });

  program
    .command('use <project>')
    .description('keep a project in the profile, by its name or id: commands are about it from now on')
    .action(async (wanted: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const profile = (await readProfiles())[options.profile];
      const session = await openSession(options);
      if (!profile || profile.url !== session.url) throw new CommandFailure('A project is kept in a profile: “portico login” makes one.');
      const project = await findProject(session, wanted);
      // A logout or a login elsewhere meanwhile stands: writing the credential back would undo it.
      if ((await readProfiles())[options.profile]?.credential !== profile.credential)
        throw new CommandFailure(`The profile ${options.profile} was changed meanwhile: nothing was kept.`);
      await changeProfile(options.profile, { ...profile, project });
      if (options.json) return writeValue(project);
      await writeLine(`Commands are about ${project.name} from now on.`);
    });
}

/** The project of the profile, if the user that logs in may see it too. */
async function keepProject(session: Session, kept: Profile | undefined): Promise<Project | null> {
  if (!kept?.project || kept.url !== session.url) return null;
  return findProject(session, kept.project.id).catch(() => null);
}
