import type { Severity } from '../generated/prisma/enums.ts';

/** The conditions of a list, null for none. */
export interface NotificationFilter {
  readonly unread: boolean | null;
  readonly severity: Severity | null;
  readonly kind: string | null;
}

type Nullish<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | undefined };

/** The filter that a client sends, through any API. An empty kind is no condition, as v1's `?kind=` is none. */
export function parseFilter(filter: Nullish<NotificationFilter> | null | undefined): NotificationFilter {
  return { unread: filter?.unread ?? null, severity: filter?.severity ?? null, kind: filter?.kind || null };
}
