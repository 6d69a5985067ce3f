import type { AccessWatch } from '../access/watch.ts';
import { type Context, createContext, type Services } from '../graph/context.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import type { Exchange } from './exchange.ts';

/** What every door makes its contexts from. */
export interface ContextParts {
  readonly database: Database;
  readonly services: Services;
  readonly watch: AccessWatch;
}

/** The context of one HTTP request: its access is watched for as long as it streams. */
export function openContext(parts: ContextParts, exchange: Exchange): Context {
  const { database, services, watch } = parts;
  const { viewer } = exchange;
  return createContext({
    database,
    openLog: () => exchange.log,
    services,
    viewer,
    onlyProject: null,
    renewCredential: async () => {
      if (!viewer) throw Fault.notAuthenticated();
      throw Fault.invalidRequest('A credential is renewed on the WebSocket that it opened.');
    },
    watchAccess: (project, shown) => watch.add(project, project, shown),
  });
}
