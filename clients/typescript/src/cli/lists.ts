import type { Command } from 'commander';
import { readNumber } from './input.ts';
import { note } from './output.ts';

/** Which page of a list is shown. */
export interface PageOptions {
  readonly page: number;
  readonly pageSize: number;
}

interface Page {
  readonly count: number;
  readonly page: number;
  readonly total_pages: number;
}

export const withPages = (command: Command): Command =>
  command
    .option('--page <number>', 'which page of the list', readNumber(1), 1)
    .option('--page-size <number>', 'how many items a page has, at most 100', readNumber(1), 20);

/** Notes that the list has more than this page. */
export function noteMore({ count, page, total_pages }: Page): void {
  if (total_pages > 1)
    note(`Page ${page} of ${total_pages}, of ${count} in all${page < total_pages ? `: --page ${page + 1} shows more` : ''}.`);
}

/** A page of a GraphQL connection. */
export interface Part<Node> {
  readonly nodes: readonly Node[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

/** The selection that every page needs. */
export const pageInfo = 'pageInfo { hasNextPage endCursor }';

/** All nodes of a connection, read page by page. */
export async function listAll<Node>(read: (after: string | null) => Promise<Part<Node>>): Promise<Node[]> {
  const all: Node[] = [];
  for (let after: string | null = null; ; ) {
    const part: Part<Node> = await read(after);
    all.push(...part.nodes);
    if (!part.pageInfo.hasNextPage) return all;
    after = part.pageInfo.endCursor;
  }
}
