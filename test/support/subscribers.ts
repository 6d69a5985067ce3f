import { connect } from 'portico-client';
import type { DemoFile } from '../../demo/file.ts';
import type { Frame } from './feed.ts';
import type { Entry } from './history.ts';
import { followPlainFeed, type PlainFeedOptions } from './plain-feed.ts';

/** A subscriber that follows a feed through interruptions, with the client package (GraphQL) or by plain JSON. */
export interface Subscriber {
  readonly name: string;
  readonly projectId: string;
  /** The cursor at which it began. */
  readonly from: number;
  /** The received notifications, in the order of arrival. */
  readonly received: Entry[];
  /** The time at which each arrived, by `performance.now()`. */
  readonly arrivals: number[];
  /** Events that no subscriber should receive: a gap, or the end of the feed. */
  readonly problems: string[];
  /** The number of `ready` events: one for each connection established. */
  readonly timesReady: number;
  /** Disconnects and subscribes again from the last received sequence, as a reloaded page does. */
  reload(): void;
  end(): void;
}

interface SubscriberOptions {
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
    const stop = (client === 'plain' ? followPlainFeed : followPackage)({
      baseUrl,
      token: demo.users[as].token ?? '',
      organizationId: demo.organization_id,
      projectId,
      after,
      onEvent(event) {
        if (!isCurrent) return;
        if (event.type === 'ready') timesReady += 1;
        if (event.type === 'gap') problems.push(`${name} was told a gap from ${event.from} to ${event.to}`);
        if (event.type !== 'notification') return;
        received.push({ sequence: event.sequence, id: event.notification.id });
        arrivals.push(performance.now());
      },
      onEnd(why) {
        if (isCurrent) problems.push(`${name} was ended: ${why instanceof Error ? why.message : JSON.stringify(why)}`);
      },
    });
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

type Options = Omit<PlainFeedOptions, 'onEnd'> & { readonly onEnd: (why: unknown) => void };

function followPackage({ baseUrl, token, projectId, after, onEvent, onEnd }: Options): () => void {
  const leaving = new AbortController();
  const feed = connect({ url: baseUrl, credential: token }).feed({ project: projectId, after, signal: leaving.signal });
  const read = async () => {
    for await (const event of feed) onEvent(event satisfies Frame);
  };
  read().then(() => leaving.signal.aborted || onEnd('without a reason'), onEnd);
  return () => leaving.abort();
}
