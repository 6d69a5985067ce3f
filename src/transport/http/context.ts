import type { RevocationWatcher } from '../../access/revocation.ts';
import { type Context, createContext, type Services } from '../../graph/context.ts';
import { Fault } from '../../kernel/fault.ts';
import type { Database } from '../../platform/database.ts';
import type { Exchange } from './exchange.ts';

/** The dependencies of every context. */
export interface ContextDependencies {
  readonly database: Database;
  readonly services: Services;
  readonly watch: RevocationWatcher;
}

/** The context of one HTTP request, whose access is watched while it streams. `v1Operation` is the name of a v1 request’s operation. */
export function openContext(
  { database, services, watch }: ContextDependencies,
  exchange: Exchange,
  v1Operation: string | null = null,
): Context {
  const { viewer, prefetched } = exchange;
  return createContext({
    database,
    openLogger: () => exchange.log,
    services,
    viewer,
    prefetched,
    onlyProject: null,
    v1Operation,
    renewCredential: async () => {
      if (!viewer) throw Fault.notAuthenticated();
      throw Fault.invalidRequest('A credential is renewed on the WebSocket that it opened.');
    },
    watchAccess: (project, subscription) => watch.add({ principal: { viewer: project.viewer }, project, subscription }),
    recordAllowance: (allowance) => exchange.recordAllowance(allowance),
    recordWait: (milliseconds) => exchange.recordWait(milliseconds),
    isAbandoned: () => exchange.isAbandoned,
  });
}
