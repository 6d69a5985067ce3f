import './graph/scalars.ts';
import './graph/project.ts';
import './accounts/schema.ts';
import './backups/schema.ts';
import './compute/schema.ts';
import './consoles/schema.ts';
import './dashboards/schema.ts';
import './notifications/schema.ts';
import './tickets/schema.ts';
import { builder } from './graph/builder.ts';
import { declareCosts } from './graph/cost.ts';

/** The one schema that all doors serve; `schema.graphql` is its printed form. */
export const schema = declareCosts(builder.toSchema());
