import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PorticoError } from '../error.ts';
import { CommandFailure } from './failure.ts';
import { parseJson, readText } from './input.ts';
import { parseExactly } from './numbers.ts';
import { replaceFile } from './replace.ts';
import type { V1Response } from './session.ts';
import { layOut } from './text.ts';

/** The writable fields of a dashboard; all others in a file are read-only. */
const editable = ['name', 'description', 'project', 'widgets', 'is_default', 'is_public'] as const;

type Content = { readonly [Field in (typeof editable)[number]]?: unknown };

export interface DashboardFile {
  readonly path: string;
  /** The text of the file, which is sent unchanged. */
  readonly text: string;
  readonly content: Content;
  /** Null if the dashboard is not on the server yet. */
  readonly id: string | null;
  readonly version: number | null;
  /** Whether it differs from what was pulled. */
  readonly isEdited: boolean;
}

/** A dashboard on the server. */
export interface Served {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly text: string;
  readonly content: Content;
}

export function readServed({ response, text }: V1Response): Served {
  const dashboard = JSON.parse(text) as Content & { id: string; name: string };
  const version = Number(/^(?:W\/)?"(\d+)"$/.exec(response.headers.get('etag') ?? '')?.[1]);
  if (!Number.isInteger(version))
    throw new PorticoError('unreachable', 'The server, or what is before it, has sent no version of the dashboard (ETag).');
  return { id: dashboard.id, name: dashboard.name, version, text, content: pick(parseExactly(text)) };
}

export async function readDashboardFile(path: string): Promise<DashboardFile> {
  const text = await readText(path);
  const value = parseJson(text, path);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new CommandFailure(`${path} holds no dashboard.`);
  const { id = null, version = null, checksum } = value as Record<string, unknown>;
  if (id !== null && typeof id !== 'string') throw new CommandFailure(`${path} has an id that is not a string.`);
  if (version !== null && !Number.isInteger(version)) throw new CommandFailure(`${path} has a version that is not an integer.`);
  const content = pick(parseExactly(text));
  return { path, text, content, id, version: version as number | null, isEdited: checksum !== sum(content) };
}

/** The file of each dashboard in a folder, by its id. */
export async function readFolder(folder: string): Promise<Map<string, DashboardFile>> {
  const names = await readdir(folder).catch((failure: NodeJS.ErrnoException) => {
    throw new CommandFailure(`${folder} cannot be read (${failure.code}).`);
  });
  const files = new Map<string, DashboardFile>();
  for (const name of names.filter((name) => name.endsWith('.json')).sort()) {
    const file = await readDashboardFile(join(folder, name)).catch(() => null);
    if (file?.id) files.set(file.id, file);
  }
  return files;
}

/** Writes the version and a checksum before the server's fields; the checksum shows later whether the file was edited. */
export async function writeDashboardFile(path: string, { version, text, content }: Served): Promise<void> {
  const own = `{"version":${version},"checksum":"${sum(content)}",`;
  await replaceFile(path, `${layOut(text.replace(/^\s*\{/, own))}\n`);
}

/**
 * A name for a new dashboard file: only letters and digits, joined by hyphens, whatever the dashboard is called. If it is taken, the id
 * is added, which may be taken too: by a file that was broken, or that somebody else has put there.
 */
export function nameFile({ id, name }: Served, isTaken: (file: string) => boolean): string {
  const words = name.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const short = shorten(words.join('-')) || 'dashboard';
  return isTaken(`${short}.json`) ? `${short}-${id}.json` : `${short}.json`;
}

/** The text without what is beyond 60 letters or 180 bytes: with an id and `.json`, a file system takes it as a name. */
function shorten(text: string): string {
  let short = '';
  for (const letter of [...text].slice(0, 60)) {
    if (Buffer.byteLength(short + letter) > 180) break;
    short += letter;
  }
  return short;
}

function pick(dashboard: unknown): Content {
  const fields = dashboard as Record<string, unknown>;
  return Object.fromEntries(editable.filter((field) => field in fields).map((field) => [field, fields[field]]));
}

const sum = (content: Content): string => createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
