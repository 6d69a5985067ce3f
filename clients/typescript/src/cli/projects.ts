import { CommandFailure } from './failure.ts';
import { listAll, type Part, pageInfo } from './lists.ts';
import type { Project } from './profiles.ts';
import type { Session } from './session.ts';

interface ListedProject {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly organization: { readonly id: string; readonly name: string };
}

interface Organization {
  readonly id: string;
  readonly name: string;
  readonly projects: Part<Omit<ListedProject, 'organization'>>;
}

const projectsOf = `id name projects(first: 100, after: $projectAfter) { nodes { id name role } ${pageInfo} }`;

/** Every project that the user may see, organization by organization. */
export async function listProjects(session: Session): Promise<ListedProject[]> {
  const document = `query ($after: String, $projectAfter: String) {
    viewer { organizations(first: 20, after: $after) { nodes { ${projectsOf} } ${pageInfo} } }
  }`;
  type Data = { viewer: { organizations: Part<Organization> } };
  const organizations = await listAll(async (after) => (await session.query<Data>(document, { after })).viewer.organizations);
  const projects: ListedProject[] = [];
  for (const organization of organizations) projects.push(...(await listRest(session, organization)));
  return projects;
}

/** All projects of an organization whose first page has been read. */
async function listRest(session: Session, { id, name, projects }: Organization): Promise<ListedProject[]> {
  const document = `query ($id: ID!, $projectAfter: String) { organization(id: $id) { ${projectsOf} } }`;
  const all = await listAll(async (projectAfter) => {
    if (projectAfter === null) return projects;
    return (await session.query<{ organization: Organization }>(document, { id, projectAfter })).organization.projects;
  });
  return all.map((project) => ({ ...project, organization: { id, name } }));
}

export const isId = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

/** The project with this name or id; for null, the user's only project. */
export async function findProject(session: Session, wanted: string | null): Promise<Project> {
  if (wanted !== null && isId(wanted)) {
    const document = 'query ($id: ID!) { project(id: $id) { id name organizationId } }';
    const { project } = await session.query<{ project: Project }>(document, { id: wanted.toLowerCase() });
    return project;
  }
  const all = await listProjects(session);
  const found = wanted === null ? all : all.filter(({ name }) => name === wanted);
  const [only] = found;
  if (only && found.length === 1) return { id: only.id, name: only.name, organizationId: only.organization.id };
  if (wanted === null && all.length === 0) throw new CommandFailure('You are in no project.');
  if (found.length === 0) throw new CommandFailure(`You are in no project ${wanted}: “portico projects” lists them.`);
  const names = found.slice(0, 10).map(({ id, name, organization }) => (wanted === null ? name : `${id} of ${organization.name}`));
  const some = names.join(', ') + (found.length > names.length ? ', …' : '');
  throw new CommandFailure(
    wanted === null
      ? `Which project: ${some}? Say --project, or keep one with “portico use”.`
      : `There are ${found.length} projects ${wanted}: ${some}. Say its id.`,
  );
}
