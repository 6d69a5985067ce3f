import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { databaseUrl, execute } from './sql.ts';

export const isPostgres = 'template' in inject('origin');

/** The PostgreSQL of this run, and the template of its databases. */
export function needPostgres(): { server: string; template: string } {
  const origin = inject('origin');
  if (!('template' in origin)) throw new Error('this needs PostgreSQL: TEST_DATABASE_URL');
  return origin;
}

/** Makes a database of its own with the demo; its URL. */
export async function copyTemplate({ server, template } = needPostgres()): Promise<string> {
  const name = `${template}_${randomBytes(6).toString('hex')}`;
  // PostgreSQL rejects concurrent copies of one template, so the copy is retried.
  for (let attempt = 0; ; attempt += 1) {
    try {
      await execute(server, `CREATE DATABASE ${name} TEMPLATE ${template}`);
      return databaseUrl(server, name);
    } catch (failure) {
      if (attempt === 50) throw failure;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
