import { Fault } from './fault.ts';

/** The rows of a list with an id between two others (exclusive), at most `limit`, in ascending or descending order of id. */
export interface IdRange {
  readonly above: string;
  readonly below: string;
  readonly limit: number;
  readonly isAscending: boolean;
  /** The number of rows to skip; 0 by default. */
  readonly offset?: number;
}

export interface PageRequest {
  readonly page: number;
  readonly pageSize: number;
}

/** One page of a list (§2.7), as GraphQL and REST return it; REST adds the links. */
export interface Page<Item> extends PageRequest {
  readonly count: number;
  readonly totalPages: number;
  readonly results: readonly Item[];
}

/** The rows of a page in their list. */
export interface PageRange {
  readonly limit: number;
  /** The number of rows to skip. */
  readonly offset: number;
}

const MAX_PAGE_SIZE = 100;

/** A page of a list that is counted first, then read. Throws `not_found` past the end; page 1 always exists. */
export async function resolvePage<Item>(
  paging: PageRequest,
  countItems: () => Promise<number>,
  read: (range: PageRange) => Promise<readonly Item[]>,
): Promise<Page<Item>> {
  const request = clampPage(paging);
  const count = await countItems();
  const results = await read({ limit: request.pageSize, offset: pageOffset(request, count) });
  return makePage(request, count, results);
}

/** A page request with its size cut to 100 (§8). Both numbers are at least 1: the arguments of a page declare this minimum. */
export function clampPage({ page, pageSize }: PageRequest): PageRequest {
  return { page, pageSize: Math.min(pageSize, MAX_PAGE_SIZE) };
}

/** The number of rows before the page. Throws `not_found` past the end; page 1 always exists. */
export function pageOffset(request: PageRequest, count: number): number {
  if (!hasPage(request, count)) throw Fault.notFound();
  return (request.page - 1) * request.pageSize;
}

/** Whether a list of `count` rows has the page. */
export function hasPage({ page, pageSize }: PageRequest, count: number): boolean {
  return page <= totalPages(count, pageSize);
}

export function makePage<Item>(request: PageRequest, count: number, results: readonly Item[]): Page<Item> {
  return { count, ...request, totalPages: totalPages(count, request.pageSize), results };
}

function totalPages(count: number, pageSize: number): number {
  return Math.max(1, Math.ceil(count / pageSize));
}
