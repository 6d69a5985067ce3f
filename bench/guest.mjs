// The endpoint of a console, in its own process: it writes as fast as it is read, reads and counts, or echoes.
import { createServer } from 'node:net';

/** @type {'speak' | 'hear' | 'echo'} */
let mode = 'echo';
let heard = 0;
const block = Buffer.alloc(64 * 1024, 'x');

const server = createServer({ noDelay: true }, (line) => {
  const speak = () => {
    while (line.writable && line.write(block)) {
      // Writes until there is backpressure.
    }
  };
  line.on('error', () => {});
  if (mode === 'speak') {
    line.on('drain', speak);
    speak();
  } else if (mode === 'echo') line.pipe(line);
  line.on('data', (bytes) => {
    heard += bytes.length;
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
process.on('message', (/** @type {{mode?: typeof mode}} */ message) => {
  if (message.mode) mode = message.mode;
  process.send?.({ heard });
});
process.on('disconnect', () => process.exit());
