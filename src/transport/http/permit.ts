import type { IncomingMessage, ServerResponse } from 'node:http';
import { refreshViewer } from '../../access/viewer.ts';
import { ADMISSION_MAX_AGE_MS } from '../../graph/context.ts';
import { recordDuration } from '../../kernel/duration.ts';
import { declaresBody, isSmallBody } from './bodyheaders.ts';
import type { ContextDependencies } from './context.ts';
import { type Exchange, exchangeOf, type Middleware } from './exchange.ts';

/**
 * Serves a request when the semaphore of its user, or without a user of its address, has a permit for it. The permit is held
 * until the handler has ended, even if the client has gone: its work would continue.
 */
export function withPermit(
  dependencies: ContextDependencies,
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Middleware {
  return async (request, response) => {
    const exchange = exchangeOf(request);
    const { semaphore } = dependencies.services;
    // A small body is read before the request asks for a permit, so that a slow client holds none. A larger one is read with the
    // permit, so that it is not in memory while the request waits.
    const hasBody = request.method !== 'GET' && declaresBody(request);
    const readsEarly = hasBody && isSmallBody(request);
    const admittedAt = performance.now();
    if (readsEarly) await exchange.readBody().catch(() => null);
    const permit = semaphore.acquire(exchange.permitKey, () => (readsEarly ? Number(request.headers['content-length'] ?? 0) : 0));
    exchange.releasePermit = permit.release;
    try {
      if (permit.acquired) {
        response.once('close', permit.release);
        if (exchange.isAbandoned) permit.release();
        await recordDuration(permit.acquired, (milliseconds) => exchange.recordWait(milliseconds));
        response.off('close', permit.release);
      }
      if (hasBody && !readsEarly) await exchange.readBody().catch(() => null);
      if (permit.acquired || performance.now() - admittedAt > ADMISSION_MAX_AGE_MS) await admitAgain(exchange, dependencies);
      await handle(request, response);
    } finally {
      permit.release();
    }
  };
}

/** The credential, and access to the project, may have been revoked while the request waited, or its body arrived. */
async function admitAgain(exchange: Exchange, { database }: ContextDependencies): Promise<void> {
  exchange.viewer &&= await refreshViewer(database, exchange.viewer);
  exchange.prefetched = null;
}
