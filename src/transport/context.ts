import type { Viewer } from '../access/viewer.ts';
import type { AccessWatch } from '../access/watch.ts';
import { type Context, createContext, type Services } from '../graph/context.ts';
import { Fault } from '../kernel/fault.ts';
import type { Database } from '../platform/database.ts';
import type { Log } from '../platform/log.ts';

/** What every door makes its contexts from. */
export interface ContextParts {
  readonly database: Database;
  readonly services: Services;
  readonly watch: AccessWatch;
}

/** The context of one HTTP request: its access is watched for as long as it streams. */
export function openContext(parts: ContextParts, { log, viewer }: { log: Log; viewer: Viewer | null }, isClientDocument: boolean): Context {
  const { database, services, watch } = parts;
  return createContext({
    database,
    log,
    services,
    viewer,
    isClientDocument,
    onlyProject: null,
    renewCredential: async () => {
      if (!viewer) throw Fault.notAuthenticated();
      throw Fault.invalidRequest('A credential is renewed on the WebSocket that it opened.');
    },
    watchAccess: (project, onLost) => watch.add({ viewer: () => viewer ?? project.viewer, project, onLost }),
  });
}
