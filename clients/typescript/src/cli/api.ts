import type { Command } from 'commander';
import { type GraphQLFault, toError, toRejection } from '../error.ts';
import { CommandFailure } from './failure.ts';
import { readData } from './input.ts';
import { type GlobalOptions, openSession } from './options.ts';
import { write, writeDocument } from './output.ts';
import type { Session, V1Response } from './session.ts';
import { cleanLines } from './text.ts';

interface ApiOptions {
  readonly data?: string;
  readonly header: readonly string[];
}

/** Headers that fetch sets or refuses, and the credential, which comes from PORTICO_CREDENTIAL or the profile. */
const OWN_HEADERS = /^(authorization|connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

const collect = (value: string, before: readonly string[]): string[] => [...before, value];

export function addApi(program: Command): void {
  program
    .command('api <method> <path>')
    .description('send any request, and print what is answered: portico api GET /v1/organizations')
    .option('--data <json>', 'the body: JSON, @file, or - for standard input')
    .option('--header <header>', 'a header, such as \'If-Match: "3"\'; as often as need be', collect, [])
    .addHelpText('after', '\nIn the path, {organization_id} and {project_id} stand for those of the project.')
    .action(async (method: string, path: string, _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions & ApiOptions>();
      const verb = method.toUpperCase();
      if (!/^(GET|HEAD|POST|PUT|PATCH|DELETE)$/.test(verb)) throw new CommandFailure(`${method} is not a method.`, 2);
      if (!path.startsWith('/')) throw new CommandFailure(`${path} is not a path: a path begins with a slash.`, 2);
      if (options.data !== undefined && /^(GET|HEAD)$/.test(verb)) throw new CommandFailure(`${verb} has no body.`, 2);
      const headers = readHeaders(options.header);
      const session = await openSession(options);
      const body = options.data === undefined ? undefined : await readData(options.data);
      const filled = await fillPath(session, path);
      const received = await session.sendAnyway(verb, filled, { headers, ...(body !== undefined && { body }) });
      await print(received);
      if (!received.response.ok) throw toRejection(received.response, received.text);
      const errors = readGraphQLErrors(received);
      if (errors.length > 0) throw toError(errors, received.response.status);
    });
}

/** A path with the ids of the project in place of their names. */
async function fillPath(session: Session, path: string): Promise<string> {
  if (!/\{(organization_id|project_id)\}/.test(path)) return path;
  const { id, organizationId } = await session.project();
  return path.replaceAll('{organization_id}', organizationId).replaceAll('{project_id}', id);
}

async function print({ response, text }: V1Response): Promise<void> {
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  if (isJson && text !== '') await writeDocument(text);
  else await write(process.stdout.isTTY ? cleanLines(text) : text);
}

/** The errors in a successful response of GraphQL; those of other paths have none. */
function readGraphQLErrors({ response, text }: V1Response): readonly GraphQLFault[] {
  if (!new URL(response.url).pathname.endsWith('/graphql')) return [];
  try {
    const { errors } = JSON.parse(text) as { errors?: unknown };
    return Array.isArray(errors) ? errors : [];
  } catch {
    // A stream of events, or a page for people.
    return [];
  }
}

function readHeaders(lines: readonly string[]): Headers {
  const headers = new Headers();
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    if (OWN_HEADERS.test(name)) throw new CommandFailure(`${name} cannot be set with --header: the program sets it itself.`, 2);
    try {
      headers.append(name, value);
    } catch {
      // The line is not repeated: it may hold a secret.
      throw new CommandFailure(`A --header is a name, a colon and a value, such as 'If-Match: "3"'.`, 2);
    }
  }
  return headers;
}
