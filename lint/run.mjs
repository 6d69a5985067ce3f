// node lint/run.mjs [folder …]: checks the hand-written SQL statements in the given folders, by default src and demo.
import { fileURLToPath } from 'node:url';
import { check } from './check.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folders = process.argv.slice(2);
const { problems, count } = await check({
  root,
  migrations: `${root}prisma/migrations`,
  folders: folders.length > 0 ? folders : ['src', 'demo'],
});
for (const { file, line, message } of problems) console.error(`${file}:${line}  ${message}`);
if (problems.length > 0) process.exitCode = 1;
else console.log(`${count} statements agree with the schema.`);
