import type { IncomingMessage, ServerResponse } from 'node:http';
import { refreshViewer } from '../../access/viewer.ts';
import { noteDuration } from '../../kernel/wait.ts';
import { isSmallBody } from './body.ts';
import type { ContextDependencies } from './context.ts';
import { type Exchange, exchangeOf, type Middleware } from './exchange.ts';

/**
 * Serves a request when it is its turn among those of its user, or without a user of its address. The turn lasts until the
 * handler has ended, even if the client has gone: its work would go on.
 */
export function inTurn(
  dependencies: ContextDependencies,
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Middleware {
  return async (request, response) => {
    const exchange = exchangeOf(request);
    const { turns } = dependencies.services;
    const owner = exchange.viewer?.userId ?? exchange.clientAddress;
    // No turn passes while a small body comes slowly. Others are read in turn: a request that waits does not have one in memory.
    const readsEarly = request.method !== 'GET' && isSmallBody(request);
    const bytes = readsEarly ? Number(request.headers['content-length'] ?? 0) : 0;
    turns.requireRoom(owner, bytes);
    if (readsEarly) await exchange.readBody().catch(() => null);
    const turn = turns.take(owner, () => bytes);
    exchange.endTurn = turn.end;
    try {
      if (turn.beginning) {
        response.once('close', turn.end);
        if (exchange.isAbandoned) turn.end();
        await noteDuration(turn.beginning, (milliseconds) => exchange.noteWait(milliseconds));
        response.off('close', turn.end);
        await admitAgain(exchange, dependencies);
      }
      await handle(request, response);
    } finally {
      turn.end();
    }
  };
}

/** The credential, and access to the project, may have been revoked while the request waited. */
async function admitAgain(exchange: Exchange, { database }: ContextDependencies): Promise<void> {
  exchange.viewer &&= await refreshViewer(database, exchange.viewer);
  exchange.prefetched = null;
}
