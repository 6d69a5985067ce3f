import './graph/scalars.ts';
import './graph/node.ts';
import './graph/project.ts';
import './graph/user.ts';
import './accounts/schema.ts';
import './backups/schema.ts';
import './compute/schema.ts';
import './consoles/schema.ts';
import './dashboards/schema.ts';
import './notifications/schema.ts';
import './notifications/publishingschema.ts';
import './notifications/feedschema.ts';
import './resources/schema.ts';
import './tickets/schema.ts';
import { builder } from './graph/builder.ts';

/** The one schema, of every API; `schema.graphql` is its printed form. */
export const schema = builder.toSchema();
