import { relative } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { ESLint } from 'eslint';
import { takeStatements } from './collect.mjs';
import { configure } from './config.mjs';

const { root, url, folders } = workerData;
const eslint = new ESLint({ cwd: root, overrideConfigFile: true, overrideConfig: configure(root, url) });
const results = await eslint.lintFiles(folders);
const problems = results.flatMap(({ filePath, messages }) => {
  const file = relative(root, filePath);
  // SafeQL appends advice on its configuration to each message, which is cut off.
  return messages.map(({ line, message }) => ({ file, line, message: message.split('\nPlease add')[0] }));
});
parentPort.postMessage({ problems, statements: takeStatements() });
