import { type Command, Option } from 'commander';
import type { components } from '../v1.ts';
import { CommandFailure } from './failure.ts';
import { noteMore, type PageOptions, readPage, withPages } from './lists.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { type Style, writeDocument, writeTable } from './output.ts';
import { isId } from './projects.ts';
import type { Session } from './session.ts';

type Page = components['schemas']['InstancePage'];
type ListOptions = GlobalOptions & PageOptions & { readonly status?: string };

const styleOf = (status: string): Style | null =>
  status === 'active' ? 'green' : status === 'suspended' ? 'yellow' : status === 'error' ? 'red' : 'dim';

export function addInstances(program: Command): void {
  const list = program
    .command('instances')
    .description('list the instances of the project, the oldest first')
    .addOption(new Option('--status <status>', 'only those of this status; without it all but the deleted ones'));
  withPages(list).action(async (_options: unknown, command: Command) => {
    const options = command.optsWithGlobals<ListOptions>();
    const { status } = options;
    const session = await openSession(options);
    const text = await readPage(session, 'compute/instances', options, { status });
    if (options.json) return writeDocument(text);
    const listed = JSON.parse(text) as Page;
    const rows = listed.results.map((one) => [
      one.name,
      { text: one.status, style: styleOf(one.status) },
      one.plan,
      String(one.vcpu),
      `${one.ram_mb} MiB`,
      `${one.storage_gb} GB`,
      one.region,
      one.id,
    ]);
    await writeTable(['INSTANCE', 'STATUS', 'PLAN', 'VCPU', 'MEMORY', 'DISK', 'REGION', 'ID'], rows);
    noteMore(listed);
  });
}

/** The id of the instance with this name or id. */
export async function findInstance(session: Session, wanted: string): Promise<string> {
  if (isId(wanted)) return wanted.toLowerCase();
  const { id: project } = await session.project();
  const document = `query ($project: ID!, $name: Text!) {
    project(id: $project) { instances(first: 100, filter: { namePrefix: $name }, orderBy: { field: name }) { nodes { id name } } }
  }`;
  type Data = { project: { instances: { nodes: { id: string; name: string }[] } } };
  const { instances } = (await session.query<Data>(document, { project, name: wanted })).project;
  const found = instances.nodes.filter(({ name }) => name === wanted);
  const [only] = found;
  if (!only) throw new CommandFailure(`There is no instance ${wanted} in the project: “portico instances” lists them.`);
  if (found.length === 1) return only.id;
  throw new CommandFailure(`There are ${found.length} instances ${wanted}: ${found.map(({ id }) => id).join(', ')}. Say its id.`);
}
