import type { Command } from 'commander';
import { PorticoError } from '../error.ts';
import { CommandFailure } from './failure.ts';
import { readNumber } from './input.ts';
import { note } from './output.ts';
import type { Session } from './session.ts';

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

type Filter = Readonly<Record<string, string | boolean | undefined>>;

/** The requested page of a list of v1, unparsed. For a page after the last, the failure says which pages there are. */
export async function readPage(session: Session, path: string, { page, pageSize }: PageOptions, filter: Filter): Promise<string> {
  const read = async (number: number) => (await session.v1('GET', path, { query: { ...filter, page: number, page_size: pageSize } })).text;
  try {
    return await read(page);
  } catch (failure) {
    if (!(failure instanceof PorticoError) || failure.code !== 'not_found' || page === 1) throw failure;
    // Whether it is the page or the project that is not found is told by the first page, which every list has.
    const { count, total_pages } = JSON.parse(await read(1)) as Page;
    const pages = total_pages === 1 ? 'only page 1' : `the pages 1 to ${total_pages}`;
    throw new CommandFailure(`There is no page ${page}: the list has ${pages}, of ${count} in all.`);
  }
}

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
