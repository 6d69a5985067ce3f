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
  return messages.map(({ line, message }) => ({ file, line, message: nameDifferences(message.split('\nPlease add')[0]) }));
});

/** SafeQL prints the type of a row and what the statement returns in full: only the columns in which they differ are of interest. */
function nameDifferences(message) {
  const [, declared, returned] = /Expected: \{(.*)\}\n\s*Actual: \{(.*)\}/.exec(message) ?? [];
  if (declared === undefined) return message;
  const [wanted, found] = [readColumns(declared), readColumns(returned)];
  const differences = [...new Set([...wanted.keys(), ...found.keys()])].flatMap((name) =>
    wanted.get(name) === found.get(name)
      ? []
      : [`${name} is ${found.get(name) ?? 'not returned'}, its type has ${wanted.get(name) ?? 'no such field'}`],
  );
  return differences.length > 0 ? `The statement and the type of its rows differ: ${differences.join('; ')}.` : message;
}

/** The columns of `a: string; b: null | number`, each with its type, whose members are sorted. */
function readColumns(text) {
  const columns = text.split(';').map((column) => column.split(':').map((part) => part.trim()));
  return new Map(columns.map(([name, type = '']) => [name, type.split(' | ').sort().join(' | ')]));
}

parentPort.postMessage({ problems, statements: takeStatements() });
