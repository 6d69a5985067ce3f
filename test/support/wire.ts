import { connect, type Socket } from 'node:net';

/** The headers with which `curl --http2` offers h2c on a connection without TLS. */
export const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA'];

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A TCP connection to the server, on which a test writes arbitrary bytes. */
interface Wire {
  readonly socket: Socket;
  write(data: string | Buffer): void;
  /** Waits until `count` responses have arrived or the server has closed; returns all responses so far. */
  receive(count: number): Promise<WireResponse[]>;
  /** Waits until the server has closed the connection. */
  closed(): Promise<void>;
}

export async function openWire(baseUrl: string, { allowHalfOpen = false } = {}): Promise<Wire> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
  /** The bytes of the response that has not arrived completely. */
  let rest = Buffer.alloc(0);
  const responses: WireResponse[] = [];
  let isClosed = false;
  let wake = () => {};
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let next = readResponse(rest); next; next = readResponse(rest)) {
      responses.push(next.response);
      rest = rest.subarray(next.length);
    }
    wake();
  });
  // A server that closes during a write resets the connection; 'close' handles that.
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
    wake();
  });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const until = async (isDone: () => boolean) => {
    while (!isDone() && !isClosed) await new Promise<void>((resolve) => (wake = resolve));
  };
  return {
    socket,
    write: (data) => void socket.write(data),
    async receive(count) {
      await until(() => responses.length >= count);
      return [...responses];
    },
    closed: () => until(() => false),
  };
}

/** The first response in the bytes, and its length; null if it is not complete. Portico's responses all carry a Content-Length. */
function readResponse(bytes: Buffer): { response: WireResponse; length: number } | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = end + 4 + Number(headers['content-length'] ?? 0);
  if (bytes.length < length) return null;
  const body = bytes.subarray(end + 4, length).toString('utf8');
  return { response: { status: Number(statusLine.split(' ')[1]), headers, body }, length };
}
