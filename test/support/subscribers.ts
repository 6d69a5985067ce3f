import WebSocket from 'ws';
import { followFeed as followGraphql } from '../../docs/clients/graphql-feed.mjs';
import { followFeed as followPlain } from '../../docs/clients/plain-feed.mjs';
import type { DemoFile } from '../../src/demo/file.ts';
import type { Entry } from './history.ts';

/** Somebody who follows a feed with one of the documented clients, through whatever happens. */
export interface Subscriber {
  readonly name: string;
  readonly projectId: string;
  /** The cursor that it began with. */
  readonly from: number;
  /** All notifications, in the order of arrival. */
  readonly received: Entry[];
  /** When each of them arrived, by `performance.now()`. */
  readonly arrivals: number[];
  /** What no subscriber should be told: a gap, or the end of the feed. */
  readonly problems: string[];
  /** How often it has been told `ready`: once for each connection that came up. */
  readonly timesReady: number;
  /** Breaks off, and begins anew with what it has, as a page that is loaded again. */
  reload(): void;
  end(): void;
}

export interface SubscriberOptions {
  readonly name: string;
  readonly client: 'plain' | 'graphql';
  readonly baseUrl: string;
  readonly demo: DemoFile;
  readonly projectId: string;
  readonly as: 'owner' | 'admin' | 'member' | 'viewer';
  readonly from: number;
}

export function openSubscriber({ name, client, baseUrl, demo, projectId, as, from }: SubscriberOptions): Subscriber {
  const received: Entry[] = [];
  const arrivals: number[] = [];
  const problems: string[] = [];
  let timesReady = 0;
  let end = () => {};
  const begin = (after: number) => {
    let isCurrent = true;
    const options = {
      baseUrl,
      getToken: async () => demo.users[as].token,
      organizationId: demo.organization_id,
      projectId,
      after,
      // biome-ignore lint/suspicious/noExplicitAny: an event of whichever type
      onEvent(event: any) {
        if (!isCurrent) return;
        if (event.type === 'ready') timesReady += 1;
        if (event.type === 'gap') problems.push(`${name} was told a gap from ${event.from} to ${event.to}`);
        if (event.type !== 'notification') return;
        received.push({ sequence: event.sequence, id: event.notification.id });
        arrivals.push(performance.now());
      },
      onEnd(failure: unknown) {
        if (isCurrent) problems.push(`${name} was ended: ${failure instanceof Error ? failure.message : JSON.stringify(failure)}`);
      },
    };
    const stop = client === 'plain' ? followPlain({ ...options, WebSocket }) : followGraphql({ ...options, webSocketImpl: WebSocket });
    end = () => {
      isCurrent = false;
      stop();
    };
  };
  begin(from);
  return {
    name,
    projectId,
    from,
    received,
    arrivals,
    problems,
    get timesReady() {
      return timesReady;
    },
    reload() {
      end();
      begin(received.at(-1)?.sequence ?? from);
    },
    end: () => end(),
  };
}
