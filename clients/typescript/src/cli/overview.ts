import type { Command } from 'commander';
import type { components } from '../v1.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { paint, type Style, write, writeDocument } from './output.ts';
import { clean } from './text.ts';

type Overview = components['schemas']['ComputeOverview'];

interface Figure {
  readonly label: string;
  readonly value: number;
  readonly style: Style | null;
}

const BAR_COLUMNS = 40;

const statusStyles: Readonly<Record<string, Style>> = {
  active: 'green',
  succeeded: 'green',
  running: 'blue',
  pending: 'blue',
  provisioning: 'blue',
  rebuilding: 'blue',
  resizing: 'blue',
  suspended: 'yellow',
  failed: 'red',
  error: 'red',
};

const attentionLabels: ReadonlyArray<readonly [keyof Overview['attention'], string, Style]> = [
  ['tasks_failed_24h', 'tasks failed', 'red'],
  ['tasks_stuck', 'tasks stuck', 'red'],
  ['instances_without_hypervisor', 'without hypervisor', 'red'],
  ['instances_suspended', 'suspended', 'yellow'],
  ['instances_throttled', 'throttled', 'yellow'],
  ['cancellations_scheduled', 'to be cancelled', 'yellow'],
];

/** One line for each figure, with a bar in proportion to the largest. */
function drawBars(title: string, figures: readonly Figure[]): string {
  const labelWidth = Math.max(0, ...figures.map(({ label }) => label.length));
  const largest = Math.max(1, ...figures.map(({ value }) => value));
  const valueWidth = String(largest).length;
  const lines = figures.map(({ label, value, style }) => {
    const bar = '█'.repeat(Math.ceil((value / largest) * BAR_COLUMNS));
    const line = `  ${label.padEnd(labelWidth)}  ${clean(String(value)).padStart(valueWidth)}`;
    return value === 0 ? paint(line, 'dim') : `${line}  ${paint(bar, style)}`;
  });
  return [title, ...lines].map((line) => `${line}\n`).join('');
}

const byStatus = (counts: Overview['tasks_by_status']): Figure[] =>
  counts.map(({ status, count }) => ({ label: clean(status), value: count, style: statusStyles[status] ?? null }));

const count = (value: number): string => clean(value.toLocaleString('en'));

export function addOverview(program: Command): void {
  program
    .command('overview')
    .description('show what there is in the project, and what needs attention')
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const session = await openSession(options);
      const { text } = await session.v1('GET', 'compute/overview');
      if (options.json) return writeDocument(text);
      const [overview] = JSON.parse(text) as [Overview];
      const { attention, resources_allocated: has, resources_count: counts } = overview;
      const { name } = await session.project();
      const sections = [
        drawBars(
          `${clean(name)}: what needs attention`,
          attentionLabels.map(([field, label, style]) => ({ label, value: attention[field], style })),
        ),
        drawBars(`${count(overview.instances_total)} instances`, byStatus(overview.instances_by_status)),
        drawBars(`${count(overview.tasks_recent_count)} tasks in the last 24 hours`, byStatus(overview.tasks_by_status)),
        `They have ${count(has.vcpu)} vCPU, ${count(has.ram_gb)} GiB of memory and ${count(has.storage_gb)} GB of disk.\n` +
          `Beside them ${count(counts.volumes)} volumes (${count(counts.storage_gb)} GB), ${count(counts.snapshots)} snapshots, ` +
          `${count(counts.backups)} backups, ${count(counts.vpcs)} VPCs and ${count(counts.ssh_keys)} SSH keys.\n`,
      ];
      await write(sections.join('\n'));
    });
}
