import { createParser } from 'eventsource-parser';
import { endedByServer, PorticoError, readRejection, toError, toUnreachable } from './error.ts';
import { type FeedEvent, type FeedRequest, feedDocument } from './events.ts';

/** The server sends a keep-alive at least every 12 seconds: a connection that is silent for this long is dead. */
const SILENCE_MS = 40_000;

/** The events of one connection by server-sent events, which pass proxies that block WebSockets. Throws `PorticoError`. */
export async function* readServerSentEvents(
  { url, credential, variables, signal, rewrite = (json) => json }: FeedRequest,
  fetchImpl: typeof fetch,
): AsyncGenerator<FeedEvent, void> {
  const connection = new AbortController();
  const abortSilent = () => connection.abort(new PorticoError('connection_lost', 'The server has fallen silent.'));
  let silence = setTimeout(abortSilent, SILENCE_MS);
  const stop = () => connection.abort(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const address = `${url}/graphql`;
  let hasBegun = false;
  try {
    const response = await fetchImpl(address, {
      method: 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query: feedDocument, variables }),
      signal: connection.signal,
    });
    if (!response.ok || !response.body) throw await readRejection(response);
    hasBegun = true;
    const waiting: FeedEvent[] = [];
    let isComplete = false;
    const parser = createParser({
      onEvent({ event, data }) {
        if (event === 'complete') isComplete = true;
        if (event !== 'next') return;
        const result = JSON.parse(rewrite(data));
        if (!result.data) throw toError(result.errors ?? [], response.status);
        waiting.push(result.data.notificationFeed);
      },
    });
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      // While the consumer works, nothing is read: the server is not silent.
      clearTimeout(silence);
      if (done) throw endedByServer();
      parser.feed(decoder.decode(value, { stream: true }));
      for (const event of waiting.splice(0)) {
        if (signal.aborted) return;
        yield event;
      }
      if (isComplete) throw endedByServer();
      silence = setTimeout(abortSilent, SILENCE_MS);
    }
  } catch (failure) {
    if (signal.aborted) return;
    if (!hasBegun || failure instanceof PorticoError) throw toUnreachable(failure, address);
    throw new PorticoError('connection_lost', 'The connection was lost.', null, null, [], { cause: failure });
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', stop);
    // A consumer that stops reading closes the connection.
    connection.abort();
  }
}
