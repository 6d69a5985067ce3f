import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { generateKey, hashSecret } from '../src/access/apikey.ts';
import type { Tokens } from '../src/access/tokens.ts';
import type { Database } from '../src/platform/database.ts';
import { type TrialExample, trialExamples } from './backups.ts';
import { findInstance } from './compute.ts';
import { consoleInstance } from './console.ts';
import { dashboards, foreignDashboardId } from './dashboards.ts';
import { notificationIds } from './notifications.ts';
import { type DemoRole, emptyProject, foreignOrganization, foreignProject, organization, project, users } from './people.ts';
import { hasDemo } from './seed.ts';

/** The content of the file: addresses and credentials of the demo. */
export interface DemoFile {
  readonly base_url: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly empty_project_id: string;
  readonly foreign: {
    readonly organization_id: string;
    readonly project_id: string;
    readonly instance_id: string;
    readonly dashboard_id: string;
  };
  readonly users: Readonly<Record<DemoRole, DemoUser>>;
  /** Ids in the main project: an instance eligible for the trial, one for each reason why not, and the one with a console. */
  readonly instances: Readonly<Record<TrialExample | 'console', string>>;
  readonly dashboards: Readonly<Record<'public' | 'private' | 'default', string>>;
  /** Of the main project, oldest first. */
  readonly notification_ids: readonly string[];
}

interface DemoUser {
  readonly id: string;
  readonly email: string;
  /** A session token for 24 hours; absent if an identity provider signs tokens. */
  readonly token?: string;
  readonly api_key: string;
}

interface DemoFileOptions {
  readonly database: Database;
  readonly tokens: Tokens;
  readonly baseUrl: string;
  readonly path: string;
}

const TOKEN_SECONDS = 86_400;
const roles = Object.keys(users) as DemoRole[];

/**
 * Rewrites the file with fresh tokens and those of its API keys that are still valid; returns its content. Returns null and
 * writes no file if the demo is not in the database. Throws if the file cannot be read or written.
 */
export async function refreshDemoFile({ database, tokens, baseUrl, path }: DemoFileOptions): Promise<DemoFile | null> {
  if (!(await hasDemo(database.prisma))) return null;
  const keys = await provideKeys(database, await readKeys(path));
  const credentials = await Promise.all(
    roles.map(async (role) => {
      const { id, email } = users[role];
      const token = await tokens.local?.sign(id, TOKEN_SECONDS);
      return [role, { id, email, ...(token && { token }), api_key: keys[role] }] as const;
    }),
  );
  const file: DemoFile = {
    base_url: baseUrl,
    organization_id: organization.id,
    project_id: project.id,
    empty_project_id: emptyProject.id,
    foreign: {
      organization_id: foreignOrganization.id,
      project_id: foreignProject.id,
      instance_id: findInstance('shop-01').id,
      dashboard_id: foreignDashboardId,
    },
    users: Object.fromEntries(credentials) as Record<DemoRole, DemoUser>,
    instances: { ...trialExamples, console: consoleInstance.id },
    dashboards: { public: dashboards.public, private: dashboards.private, default: dashboards.default },
    notification_ids: notificationIds,
  };
  await replaceFile(path, `${JSON.stringify(file, null, 2)}\n`);
  return file;
}

const keysOfFile = z.object({ users: z.record(z.string(), z.object({ api_key: z.string() })) });

/** The API keys in the existing file; none if there is no file or its content is not a demo file's. */
async function readKeys(path: string): Promise<Partial<Record<string, string>>> {
  const text = await readFile(path, 'utf8').catch((failure: NodeJS.ErrnoException) => {
    if (failure.code === 'ENOENT') return '';
    // The error of a folder names no path.
    throw Object.assign(failure, { path });
  });
  const parsed = keysOfFile.safeParse(parseJson(text));
  if (!parsed.success) return {};
  return Object.fromEntries(Object.entries(parsed.data.users).map(([role, user]) => [role, user.api_key]));
}

/** A key for every user: the known one if it is still valid, otherwise a new one. Two statements, however many users. */
async function provideKeys(database: Database, known: Partial<Record<string, string>>): Promise<Record<DemoRole, string>> {
  const ids = roles.map((role) => users[role].id);
  const hashes = roles.map((role) => hashSecret(known[role] ?? ''));
  const valid = await database.query<{ userId: string }>`
    SELECT user_id AS "userId" FROM api_keys
    WHERE (user_id, secret_hash) IN (SELECT * FROM unnest(${ids}::uuid[], ${hashes}::bytea[]))
      AND revoked IS NULL AND (expires IS NULL OR expires > ${new Date()})`;
  const keys = roles.map((role) => {
    const userId = users[role].id;
    const kept = valid.some((row) => row.userId === userId) ? known[role] : undefined;
    return kept ? { role, key: kept, row: null } : { role, ...makeKey(userId) };
  });
  const data = keys.flatMap(({ row }) => row ?? []);
  // Inserted before the file is written, so that the file never holds a key that does not work.
  if (data.length > 0) await database.prisma.apiKey.createMany({ data });
  return Object.fromEntries(keys.map(({ role, key }) => [role, key])) as Record<DemoRole, string>;
}

function makeKey(userId: string) {
  const { key, ...stored } = generateKey();
  return { key, row: { userId, name: 'demo', ...stored } };
}

/** Replaces the file atomically, by renaming a draft; only its owner can read it. */
async function replaceFile(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' });
    await rename(draft, path);
  } catch (failure) {
    await rm(draft, { force: true });
    throw failure;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
