import WebSocket from 'ws';
import type { TestApp } from './app.ts';

// biome-ignore lint/suspicious/noExplicitAny: a frame of the feed, of any type
export type Frame = any;

export interface FeedSocket {
  readonly socket: WebSocket;
  /** All frames received, in order. */
  readonly frames: Frame[];
  /** Resolves with the close code and reason. */
  readonly closed: Promise<{ code: number; reason: string }>;
  /** Resolves with the first frame that satisfies the predicate. */
  until(isIt: (frame: Frame) => boolean): Promise<Frame>;
}

/** Opens a WebSocket at a path of the app, which may contain a query. */
export function openSocket(
  app: Pick<TestApp, 'baseUrl'>,
  path: string,
  { protocol, headers }: { protocol?: string; headers?: Record<string, string> } = {},
): FeedSocket {
  const socket = new WebSocket(app.baseUrl.replace('http', 'ws') + path, protocol ? [protocol] : [], { headers });
  const frames: Frame[] = [];
  const waiting = new Set<() => void>();
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)));
    for (const check of waiting) check();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('error', () => {});
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  return {
    socket,
    frames,
    closed,
    until: (isIt) =>
      new Promise((resolve, reject) => {
        let seen = 0;
        const check = () => {
          for (; seen < frames.length; seen += 1) {
            if (!isIt(frames[seen])) continue;
            waiting.delete(check);
            return resolve(frames[seen]);
          }
        };
        waiting.add(check);
        check();
        closed.then(({ code, reason }) => reject(new Error(`closed with ${code} ${reason} before it came`)));
      }),
  };
}

/** Opens the plain-JSON feed of the demo's main project, with a session token in the header. */
export function openPlainFeed(
  app: TestApp,
  { after, as = 'owner' }: { after?: number; as?: 'owner' | 'admin' | 'member' | 'viewer' } = {},
) {
  const query = after === undefined ? '' : `?after=${after}`;
  return openSocket(app, `${app.projectPath}/notifications/ws${query}`, {
    headers: { authorization: `Bearer ${app.demo.users[as].token}` },
  });
}

export async function takeTicket(
  app: TestApp,
  as: 'owner' | 'admin' | 'member' | 'viewer' = 'owner',
): Promise<{ ticket: string; path: string }> {
  const response = await app.ask('POST', `${app.projectPath}/websocket-tickets`, { as, body: { target: 'notifications' } });
  if (response.status !== 201) throw new Error(response.text);
  return response.json;
}

export async function publish(app: TestApp, title: string): Promise<number> {
  const response = await app.graphql(
    'mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { sequence } } }',
    { input: { organizationId: app.demo.organization_id, projectId: app.demo.project_id, kind: 'test.event', severity: 'info', title } },
  );
  return response.json.data.publishNotification.notification.sequence;
}

/** The committed notification log of the demo's main project. */
export function readLog(app: TestApp): Promise<Array<{ sequence: number; id: string }>> {
  return app.app.database.prisma.$queryRaw`
    SELECT sequence::int AS sequence, id::text AS id FROM notifications WHERE project_id = ${app.demo.project_id}::uuid ORDER BY sequence`;
}
