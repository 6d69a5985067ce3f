import { readFileSync } from 'node:fs';
import { packageRoot } from '../../src/platform/packageroot.ts';

const lines = readFileSync(new URL('compose.yaml', packageRoot), 'utf8')
  .split('\n')
  .filter((line) => !/^\s*(#|$)/.test(line));

/** The block nested below a line, with its indentation removed. */
function below(start: number): string[] {
  const indent = indentOf(lines[start] ?? '');
  const end = lines.findIndex((line, index) => index > start && indentOf(line) <= indent);
  const block = lines.slice(start + 1, end === -1 ? undefined : end);
  return block.map((line) => line.slice(indent + 2));
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

const shared = below(lines.findIndex((line) => line.endsWith(': &confined')));

/** The services of compose.yaml, each as its lines, with the shared block expanded. Only the YAML that the file uses is supported. */
export const services: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  below(lines.indexOf('services:')).flatMap((line) => {
    const name = /^(\w+):$/.exec(line)?.[1];
    if (name === undefined) return [];
    const own = below(lines.indexOf(`  ${line}`));
    return [[name, own.flatMap((part) => (part === '<<: *confined' ? shared : part))]];
  }),
);

/** The command of a service, with `$$` unchanged; empty if the image's own command is used. */
export function command(name: string): string {
  const own = services[name] ?? [];
  const start = own.findIndex((line) => line.startsWith('command:'));
  if (start === -1) return '';
  const end = own.findIndex((line, index) => index > start && indentOf(line) === 0);
  return own.slice(start, end === -1 ? undefined : end).join('\n');
}
