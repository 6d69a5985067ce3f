import DataLoader from 'dataloader';
import type { InProject, ProjectScope } from '../access/scope.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { Database } from '../platform/database.ts';
import type { OpenedProjects } from './openedprojects.ts';

/** Returns a value for each project, in order. */
export type LoadByProject<Args extends readonly unknown[], Value> = (
  database: Database,
  scopes: readonly ProjectScope[],
  ...args: Args
) => Promise<readonly Value[]>;

/** Returns a value for each object, in order. */
export type LoadInScope<Args extends readonly unknown[], Value> = (
  database: Database,
  requested: readonly InProject[],
  ...args: Args
) => Promise<readonly Value[]>;

/** The values of one function for one list of arguments, by key. */
type Loader = DataLoader<string, unknown>;

const UUID_LENGTH = 36;

/** Batches what a request loads within one tick, and remembers it: by the function that loads it, its arguments, and a key. */
export class RequestLoaders {
  readonly #database: Database;
  readonly #projects: OpenedProjects;
  #loaders: Map<object, Map<string, Loader>> | null = null;
  /** The batches that are being loaded; null before the first, as each event of a subscription has a context. */
  #running: Set<Promise<unknown>> | null = null;
  #isEnded = false;

  constructor(database: Database, projects: OpenedProjects) {
    this.#database = database;
    this.#projects = projects;
  }

  /** `run` calls `loadMany` with the keys of a batch. */
  load<Key extends string, Value>(
    loadMany: object,
    args: readonly unknown[],
    key: Key,
    run: (keys: readonly Key[]) => Promise<readonly Value[]>,
  ): Promise<Value> {
    this.#loaders ??= new Map();
    const byArguments = getOrInsert(this.#loaders, loadMany, () => new Map<string, Loader>());
    const loader = getOrInsert(
      byArguments,
      JSON.stringify(args),
      () => new DataLoader((keys) => this.#run(() => run(keys as readonly Key[]))),
    );
    return loader.load(key) as Promise<Value>;
  }

  loadByProject<Args extends readonly unknown[], Value>(
    loadMany: LoadByProject<Args, Value>,
    { projectId }: ProjectScope,
    args: Args,
  ): Promise<Value> {
    return this.load(loadMany, args, projectId, (ids) => {
      const scopes = ids.map((id) => this.#projects.find(id));
      return loadMany(this.#database, scopes, ...args);
    });
  }

  /** Throws `not_found` if the project is not registered. */
  loadInScope<Args extends readonly unknown[], Value>(
    loadMany: LoadInScope<Args, Value>,
    projectId: string,
    id: string,
    args: Args,
  ): Promise<Value> {
    this.#projects.find(projectId);
    const parse = (key: string) => ({ scope: this.#projects.find(key.slice(0, UUID_LENGTH)), id: key.slice(UUID_LENGTH) });
    return this.load(loadMany, args, projectId + id, (keys) => loadMany(this.#database, keys.map(parse), ...args));
  }

  /** Forgets everything that was loaded. */
  clear(): void {
    this.#loaders = null;
  }

  /** Begins no further batch. Resolves when those that are being loaded have ended; null if there are none. */
  end(): Promise<unknown> | null {
    this.#isEnded = true;
    return this.#running?.size ? Promise.allSettled(this.#running) : null;
  }

  async #run<Values>(load: () => Promise<Values>): Promise<Values> {
    // A failure would be one more error of a response that may not have been sent yet.
    if (this.#isEnded) return new Promise(() => {});
    this.#running ??= new Set();
    const batch = load();
    this.#running.add(batch);
    try {
      return await batch;
    } finally {
      this.#running.delete(batch);
    }
  }
}
