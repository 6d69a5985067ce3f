import type { ProjectScope } from '../access/scope.ts';
import type { FieldReader } from '../graph/fieldreader.ts';

/** A row of the table `dashboards`. */
export interface DashboardRow {
  readonly id: string;
  readonly projectId: string;
  readonly createdById: string;
  readonly name: string;
  readonly description: string;
  readonly widgets: unknown;
  readonly isDefault: boolean;
  readonly isPublic: boolean;
  readonly version: number;
  readonly created: Date;
  readonly modified: Date;
}

/** A dashboard with the organization of its project. */
export type Dashboard = DashboardRow & { readonly organizationId: string };

/** The fields that may be large: a list reads each only where it is requested, and only within the response's byte budget. */
export const heavyFields: ReadonlySet<string> = new Set(['description', 'widgets']);

/** Which of the heavy columns a statement reads. */
export function heavyColumnsOf({ selected }: FieldReader) {
  return { readsDescription: selected.has('description'), readsWidgets: selected.has('widgets') };
}

export function withOrganization({ organizationId }: Pick<ProjectScope, 'organizationId'>, row: DashboardRow): Dashboard {
  return Object.assign(row, { organizationId });
}
