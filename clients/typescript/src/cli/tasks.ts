import type { Command } from 'commander';
import type { components } from '../v1.ts';
import { noteMore, type PageOptions, readPage, withPages } from './lists.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { type Style, writeDocument, writeTable } from './output.ts';
import { formatTime } from './text.ts';

type Page = components['schemas']['TaskPage'];
type ListOptions = GlobalOptions & PageOptions & { readonly status?: string };

const styles: Readonly<Record<string, Style>> = { pending: 'blue', running: 'blue', succeeded: 'green', failed: 'red' };

export function addTasks(program: Command): void {
  const list = program
    .command('tasks')
    .description('list the tasks of the project, the newest first')
    .option('--status <status>', 'only those of this status, such as failed');
  withPages(list).action(async (_options: unknown, command: Command) => {
    const options = command.optsWithGlobals<ListOptions>();
    const { status } = options;
    const session = await openSession(options);
    const text = await readPage(session, 'compute/tasks', options, { status });
    if (options.json) return writeDocument(text);
    const listed = JSON.parse(text) as Page;
    const rows = listed.results.map((one) => [
      one.kind,
      { text: one.status, style: styles[one.status] ?? 'dim' },
      formatTime(one.created),
      one.finished === null ? '' : formatTime(one.finished),
      one.instance ?? '',
      one.id,
      one.error,
    ]);
    await writeTable(['TASK', 'STATUS', 'CREATED (UTC)', 'FINISHED (UTC)', 'INSTANCE', 'ID', 'ERROR'], rows);
    noteMore(listed);
  });
}
