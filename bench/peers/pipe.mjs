// A WebSocket on one side and a TCP connection on the other, with nothing between them but backpressure in both directions.
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { WebSocketServer } from 'ws';
import { listen, verify } from './access.mjs';

const MAX_WAITING_BYTES = 512 * 1024;

const server = createServer((_request, response) => response.writeHead(404).end());
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', async (request, socket, head) => {
  try {
    await verify(request.headers.authorization);
  } catch {
    socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    return;
  }
  sockets.handleUpgrade(request, socket, head, (client) => {
    const line = connect({ host: '127.0.0.1', port: Number(process.env.GUEST_PORT), noDelay: true });
    line.on('data', (bytes) => {
      client.send(bytes, () => client.bufferedAmount < MAX_WAITING_BYTES / 2 && line.resume());
      if (client.bufferedAmount > MAX_WAITING_BYTES) line.pause();
    });
    line.on('drain', () => client.resume());
    line.on('error', () => client.terminate());
    line.on('close', () => client.close());
    client.on('message', (data) => {
      if (!line.write(/** @type {Buffer} */ (data))) client.pause();
    });
    client.on('error', () => {});
    client.on('close', () => line.destroy());
  });
});
listen(server);
