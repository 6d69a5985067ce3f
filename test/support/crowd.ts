import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Sending {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

/** An HTTP client that sends from one address over many connections at once. */
export interface Crowd {
  send(sending: Sending): Promise<Reply>;
  /** Sends all requests as fast as the connections allow; the replies are in the order of the requests. */
  sendAll(sendings: readonly Sending[]): Promise<Reply[]>;
  /** The number of connections that have delivered a reply so far. */
  countConnections(): number;
  close(): void;
}

/** `address` is the local address of the connections: any of 127.0.0.0/8 reaches a server on 127.0.0.1. */
export function openCrowd(baseUrl: string, address: string, connections = 64): Crowd {
  // Idle connections are closed after 3 s, long before the server closes them (75 s), so that none is closed during a request.
  const agent = new Agent({ keepAlive: true, timeout: 3_000, maxSockets: connections, maxFreeSockets: connections });
  const { hostname, port } = new URL(baseUrl);
  const ports = new Set<number>();
  const send = ({ method = 'GET', path, headers, body }: Sending) =>
    new Promise<Reply>((resolve, reject) => {
      const sent = httpRequest({ agent, hostname, port, localAddress: address, method, path, headers }, (response) => {
        ports.add(response.socket.localPort ?? 0);
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  return {
    send,
    sendAll: (sendings) => Promise.all(sendings.map(send)),
    countConnections: () => ports.size,
    close: () => agent.destroy(),
  };
}
