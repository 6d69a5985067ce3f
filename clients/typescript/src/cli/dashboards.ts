import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { PorticoError } from '../error.ts';
import {
  type DashboardFile,
  nameFile,
  readDashboardFile,
  readFolder,
  readServed,
  type Served,
  writeDashboardFile,
} from './dashboard-file.ts';
import { type Difference, findDifferences } from './difference.ts';
import { CommandFailure, describeFailure, isUncertain } from './failure.ts';
import { listAll, type Part, pageInfo } from './lists.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { note, writeLine, writeTable, writeValue } from './output.ts';
import { isId } from './projects.ts';
import type { Session } from './session.ts';
import { formatTime } from './text.ts';

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly is_default: boolean;
  readonly is_public: boolean;
  readonly modified: string;
}

/** The result for one file. */
interface Outcome {
  readonly file: string;
  readonly state: 'new' | 'pulled' | 'pushed' | 'unchanged' | 'edited' | 'conflict' | 'refused' | 'unknown';
  readonly id: string | null;
  readonly version: number | null;
  readonly differences?: readonly Difference[];
  /** Why it was refused, why its state on the server is unknown, or why the file could not be written after a push. */
  readonly error?: string;
}

const sentences: Readonly<Record<Exclude<Outcome['state'], 'refused' | 'conflict' | 'unknown'>, string>> = {
  new: 'new',
  pulled: 'pulled',
  pushed: 'pushed',
  unchanged: 'unchanged',
  edited: 'edited and not pushed yet: left as it is',
};

export function addDashboards(program: Command): void {
  const dashboards = program.command('dashboards').description('the monitoring dashboards of the project, as files');

  dashboards
    .command('list')
    .description('list the dashboards that you may see, the oldest first')
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const all = await listDashboards(await openSession(options));
      if (options.json) return writeValue(all);
      const rows = all.map(({ name, version, is_default, is_public, modified, id }) => {
        const marks = [is_default && 'default', is_public ? 'public' : 'private'].filter(Boolean).join(', ');
        return [name, String(version), marks, formatTime(modified), id];
      });
      await writeTable(['DASHBOARD', 'VERSION', 'FOR', 'MODIFIED (UTC)', 'ID'], rows);
    });

  dashboards
    .command('pull [dashboards...]')
    .description('write dashboards to files, by their names or ids, or all of them; what was edited in a file stays')
    .option('--dir <folder>', 'where the files are', '.')
    .option('--force', 'write over what was edited in the files')
    .action(async (wanted: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & { readonly dir: string; readonly force?: boolean }>();
      const session = await openSession(options);
      const listed = await listDashboards(session);
      const chosen = wanted.length === 0 ? listed : new Set(wanted.map((name) => chooseDashboard(listed, name)));
      await mkdir(options.dir, { recursive: true });
      const files = await readFolder(options.dir);
      await runEach(chosen, async ({ id }) => pull(await getDashboard(session, id), files.get(id), options), options);
    });

  dashboards
    .command('push <files...>')
    .description('send edited files back; one without an id becomes a new dashboard, one that was changed meanwhile is not written over')
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const session = await openSession(options);
      // A file that is named twice would become two dashboards.
      const distinct = new Map(paths.map((path) => [resolve(path), path]));
      const files = await Promise.all([...distinct.values()].map(readDashboardFile));
      await runEach(files, (file) => push(session, file), options);
    });
}

async function listDashboards(session: Session): Promise<Listed[]> {
  const { id } = await session.project();
  const document = `query ($id: ID!, $after: String) {
    project(id: $id) {
      dashboards(first: 100, after: $after) {
        nodes { id name description version is_default: isDefault is_public: isPublic created_by: createdById created modified }
        ${pageInfo}
      }
    }
  }`;
  type Data = { project: { dashboards: Part<Listed> } };
  return listAll(async (after) => (await session.query<Data>(document, { id, after })).project.dashboards);
}

function chooseDashboard(listed: readonly Listed[], wanted: string): Listed {
  const found = listed.filter(({ id, name }) => (isId(wanted) ? id === wanted.toLowerCase() : name === wanted));
  const [only] = found;
  if (!only) throw new CommandFailure(`There is no dashboard ${wanted} that you may see: “portico dashboards list” lists them.`);
  if (found.length === 1) return only;
  throw new CommandFailure(`There are ${found.length} dashboards ${wanted}: ${found.map(({ id }) => id).join(', ')}. Say the id.`);
}

const getDashboard = async (session: Session, id: string): Promise<Served> =>
  readServed(await session.v1('GET', `monitoring/dashboards/${encodeURIComponent(id)}`));

async function pull(served: Served, file: DashboardFile | undefined, { dir, force }: { dir: string; force?: boolean }): Promise<Outcome> {
  const { id, version } = served;
  if (!file) {
    const isTaken = (name: string) => existsSync(join(dir, name));
    const name = nameFile(served, isTaken);
    const path = join(dir, name);
    if (isTaken(name))
      return { file: path, state: 'refused', id, version, error: 'it is there, and not this dashboard: mend it, or move it away.' };
    await writeDashboardFile(path, served);
    return { file: path, state: 'new', id, version };
  }
  if (!file.isEdited && file.version === version) return { file: file.path, state: 'unchanged', id, version };
  const differences = findDifferences(served.content, file.content);
  if (file.isEdited && !force && differences.length > 0) {
    if (file.version === version) return { file: file.path, state: 'edited', id, version };
    return { file: file.path, state: 'conflict', id, version, differences };
  }
  await writeDashboardFile(file.path, served);
  return { file: file.path, state: 'pulled', id, version };
}

async function push(session: Session, file: DashboardFile): Promise<Outcome> {
  const { path, text, id, version } = file;
  try {
    if (id === null) {
      const made = readServed(await session.v1('POST', 'monitoring/dashboards', { body: text }));
      return await save('new', path, made);
    }
    if (version === null) throw new CommandFailure('it has an id and no version: pull it first.');
    if (!file.isEdited) return { file: path, state: 'unchanged', id, version };
    const address = `monitoring/dashboards/${encodeURIComponent(id)}`;
    const written = readServed(await session.v1('PUT', address, { body: text, headers: { 'if-match': `"${version}"` } }));
    return await save('pushed', path, written);
  } catch (failure) {
    const error = describeFailure(failure);
    if (error === null || (failure instanceof PorticoError && failure.code === 'not_authenticated')) throw failure;
    if (isUncertain(failure)) return { file: path, state: 'unknown', id, version, error };
    const isConflict = failure instanceof PorticoError && failure.code === 'conflict' && id !== null;
    const there = isConflict ? await getDashboard(session, id) : null;
    if (!there || there.version === version) return { file: path, state: 'refused', id, version, error };
    const differences = findDifferences(there.content, file.content);
    // An earlier push whose response was lost, or the same edit by somebody else.
    if (differences.length === 0) return await save('unchanged', path, there);
    return { file: path, state: 'conflict', id, version: there.version, differences };
  }
}

/** Writes what the server has stored to its file. */
async function save(state: 'new' | 'pushed' | 'unchanged', path: string, served: Served): Promise<Outcome> {
  const { id, version } = served;
  try {
    await writeDashboardFile(path, served);
    return { file: path, state, id, version };
  } catch (failure) {
    const error = describeFailure(failure);
    if (error === null) throw failure;
    return { file: path, state, id, version, error };
  }
}

/** Does one after the other and prints the results, also those before a failure that ends the command; throws if one is not as it should be. */
async function runEach<T>(all: Iterable<T>, run: (one: T) => Promise<Outcome>, options: GlobalOptions): Promise<void> {
  const outcomes: Outcome[] = [];
  try {
    for (const one of all) outcomes.push(await run(one));
  } catch (failure) {
    const advice = outcomes.length > 0 && (await report(outcomes, options));
    if (advice) note(advice);
    throw failure;
  }
  const advice = await report(outcomes, options);
  if (advice) throw new CommandFailure(advice);
}

/** Prints the results, and returns what the user should know about those that are not as they should be. */
async function report(outcomes: readonly Outcome[], { json }: GlobalOptions): Promise<string> {
  if (json) await writeValue(outcomes);
  else for (const outcome of outcomes) await show(outcome);
  const say = (isAffected: (outcome: Outcome) => boolean, sentence: (names: string) => string): string[] => {
    const names = outcomes.filter(isAffected).map(({ file }) => file);
    return names.length === 0 ? [] : [sentence(names.join(', '))];
  };
  const isConflict = ({ state }: Outcome) => state === 'conflict';
  const all = [
    ...say(
      (outcome) => outcome.state === 'refused' || isConflict(outcome),
      (names) => `Nothing was written for ${names}.`,
    ),
    ...say(isConflict, () => 'Take what is there with “portico dashboards pull --force”, or give the file that version and push it.'),
    ...say(
      ({ state }) => state === 'unknown',
      (names) => `Whether ${names} was written there is not known: see “portico dashboards list” before you push it again.`,
    ),
    ...say(
      ({ state, error }) => error !== undefined && (state === 'new' || state === 'pushed' || state === 'unchanged'),
      (names) => `The file ${names} could not be written after the push: pull the dashboard, and do not push this file again.`,
    ),
  ];
  return all.join(' ');
}

async function show({ file, state, version, differences = [], error = '' }: Outcome): Promise<void> {
  if (state === 'refused' || state === 'unknown') return writeLine(`${file}: ${error}`);
  if (state !== 'conflict')
    return writeLine(`${file}: ${sentences[state]}${version === null ? '' : ` (version ${version})`}${error && `; ${error}`}`);
  await writeLine(`${file}: conflict, as it is at version ${version} there`);
  const rows = differences.map(({ path, there, yours }) => [path, there, yours]);
  await writeTable(['FIELD', 'THERE', 'YOURS'], rows);
}
