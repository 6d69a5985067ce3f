interface ListBody {
  readonly count: number;
  readonly page: number;
  readonly page_size: number;
  readonly total_pages: number;
  readonly results: readonly unknown[];
}

/** The body of a list (§2.7) with its links: the same absolute URL with another `page`, or null at either end. */
export function withLinks({ count, ...rest }: ListBody, url: string) {
  const link = (page: number) => {
    if (page < 1 || page > rest.total_pages) return null;
    const target = new URL(url);
    target.searchParams.set('page', String(page));
    return target.href;
  };
  return { count, next: link(rest.page + 1), previous: link(rest.page - 1), ...rest };
}
