// A bare broadcast over ws: each client receives everything that is published.
import { createServer } from 'node:http';
import { WebSocket, WebSocketServer } from 'ws';
import { listen, verify } from './access.mjs';

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const data = Buffer.concat(parts);
  for (const client of sockets.clients) if (client.readyState === WebSocket.OPEN) client.send(data, { binary: false });
  response.writeHead(204).end();
});
const sockets = new WebSocketServer({ noServer: true });
server.on('upgrade', async (request, socket, head) => {
  try {
    await verify(request.headers.authorization);
  } catch {
    socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    return;
  }
  sockets.handleUpgrade(request, socket, head, (client) => {
    client.on('error', console.error);
  });
});
listen(server);
