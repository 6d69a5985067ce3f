import {
  openProject,
  type ParsedProjectIds,
  type PrefetchedProject,
  type ProjectIds,
  type ProjectScope,
  parseProjectIds,
  rebindScope,
} from '../access/scope.ts';
import type { Viewer } from '../access/viewer.ts';
import { Fault } from '../kernel/fault.ts';
import { getOrInsert } from '../kernel/map.ts';
import type { Database } from '../platform/database.ts';

/** The ids of the only project that may be opened. */
export interface OnlyProject {
  readonly organizationId: string;
  readonly projectId: string;
}

export interface ProjectSource {
  /** Where access is checked. */
  readonly database: Database;
  /** Null: any project that the viewer may see. */
  readonly onlyProject: OnlyProject | null;
  /** A lookup of a project that the admission has started. */
  readonly prefetched?: PrefetchedProject | null;
}

/** The projects that a request has opened. */
export class OpenedProjects {
  readonly #source: ProjectSource;
  /** Where the scopes read and write. */
  readonly #database: Database;
  #prefetched: PrefetchedProject | null;
  /** The checks of access, by the ids of the request. */
  #checks: Map<string, Promise<ProjectScope>> | null = null;
  #registered: Map<string, ProjectScope> | null = null;

  constructor(source: ProjectSource, database: Database) {
    this.#source = source;
    this.#database = database;
    this.#prefetched = source.prefetched ?? null;
  }

  /** Opens a project, checking access once, however often it is named. Throws `not_found`. */
  async open(viewer: Viewer, ids: ProjectIds): Promise<ProjectScope> {
    const parsed = parseProjectIds(ids);
    const only = this.#source.onlyProject;
    if (!parsed || (only && !isOnly(only, parsed))) throw Fault.notFound();
    this.#checks ??= new Map();
    return getOrInsert(this.#checks, `${parsed.organizationId}/${parsed.projectId}`, async () => {
      // The look-up is shared with other requests.
      return rebindScope(await openProject(this.#source.database, viewer, ids, this.#prefetched), this.#database);
    });
  }

  /** From now on `find` returns the scope. */
  register(scope: ProjectScope): void {
    this.#registered ??= new Map();
    this.#registered.set(scope.projectId, scope);
  }

  /** Throws `not_found` if the project is not registered. */
  find(projectId: string): ProjectScope {
    const scope = this.#registered?.get(projectId);
    if (!scope) throw Fault.notFound();
    return scope;
  }

  /** The project that was looked up before the request waited is looked up again. */
  dropPrefetched(): void {
    this.#prefetched = null;
  }

  /** Checks access to all registered projects again, whatever the role. Throws `not_found` if that to one of them was lost. */
  async checkAgain(viewer: Viewer): Promise<void> {
    const { database } = this.#source;
    await Promise.all([...(this.#registered?.values() ?? [])].map((ids) => openProject(database, viewer, ids)));
  }

  /** Forgets the projects: access is checked again when one is opened again. */
  clear(): void {
    // The look-up of the admission is for the first field that opens a project.
    if (this.#checks) this.#prefetched = null;
    this.#checks = null;
    this.#registered = null;
  }
}

function isOnly(only: OnlyProject, { organizationId, projectId }: ParsedProjectIds): boolean {
  return projectId === only.projectId && (organizationId === null || organizationId === only.organizationId);
}
