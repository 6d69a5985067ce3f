import type { Session } from '../../session/session.ts';

export interface Ids {
  readonly organizationId: string | null;
  readonly projectId: string | null;
  readonly instanceId: string | null;
  readonly dashboardId: string | null;
}

/** The values in a reader's examples. Those that are unknown or hidden are placeholders in capitals. */
export interface Reader {
  readonly origin: string;
  readonly socketOrigin: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly instanceId: string;
  readonly dashboardId: string;
  /** Valid for everything except operations that require a session token. */
  readonly key: string;
  readonly token: string;
}

export function readerOf(ids: Ids, { kind, credential }: Session, isShown: boolean): Reader {
  return {
    origin: location.origin,
    socketOrigin: location.origin.replace(/^http/, 'ws'),
    organizationId: ids.organizationId ?? 'YOUR_ORGANIZATION_ID',
    projectId: ids.projectId ?? 'YOUR_PROJECT_ID',
    instanceId: ids.instanceId ?? 'YOUR_INSTANCE_ID',
    dashboardId: ids.dashboardId ?? 'YOUR_DASHBOARD_ID',
    key: isShown ? credential : 'YOUR_KEY',
    token: isShown && kind !== 'key' ? credential : 'YOUR_SESSION_TOKEN',
  };
}

export const projectUrl = ({ origin, organizationId, projectId }: Reader) =>
  `${origin}/v1/organizations/${organizationId}/projects/${projectId}`;

/** The demo's ids in the guides. */
const demo = {
  organizationId: '019b76da-a800-7f80-b447-2b4165543001',
  projectId: '019b76da-a800-7699-b853-3a4a1bd868a0',
  consoleInstanceId: '019b76da-abe8-7968-9eea-84a83679648d',
};

/** Replaces the demo's addresses and ids in a guide's text by the reader's. */
export function fillIn(text: string, reader: Reader): string {
  return text
    .replaceAll('http://localhost:4000', reader.origin)
    .replaceAll('ws://localhost:4000', reader.socketOrigin)
    .replaceAll('wss://host', reader.socketOrigin)
    .replaceAll(demo.organizationId, reader.organizationId)
    .replaceAll(demo.projectId, reader.projectId);
}

/** Makes an example runnable as it stands: variables that another example would have set are replaced by their values. */
export function fillInExample(text: string, language: string, reader: Reader): string {
  const filled = fillIn(text, reader);
  if (language === 'sh' || language === 'console') return fillInShell(filled, reader);
  return filled
    .replaceAll(demo.consoleInstanceId, reader.instanceId)
    .replaceAll('process.env.PORTICO_KEY', `'${reader.key}'`)
    .replaceAll(/`Bearer \$\{\w+\}`/g, `'Bearer ${reader.key}'`)
    .replaceAll('{ organization_id, project_id }', `{ organization_id: '${reader.organizationId}', project_id: '${reader.projectId}' }`);
}

function fillInShell(text: string, reader: Reader): string {
  const lines = text
    .replace(/^export DEMO=.*\n/m, '')
    .replace(/^KEY=.*$/m, `KEY=${reader.key}`)
    .replace(/^TOKEN=.*$/m, `TOKEN=${reader.token}`)
    .replaceAll(/\$\(node -p 'require\(process\.env\.DEMO\)\.dashboards\.\w+'\)/g, reader.dashboardId)
    .replaceAll(/node -p "require\('[^']*demo\.json'\)\.users\.\w+\.api_key"/g, `echo ${reader.key}`);
  const variables = { BASE: reader.origin, KEY: reader.key, TOKEN: reader.token, PROJECT: projectUrl(reader) };
  return Object.entries(variables).reduce(
    (filled, [name, value]) =>
      new RegExp(`^${name}=`, 'm').test(filled) ? filled : filled.replaceAll(new RegExp(`\\$${name}\\b`, 'g'), value),
    lines,
  );
}
