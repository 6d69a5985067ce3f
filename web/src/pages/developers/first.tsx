import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { CopyButton } from '../../parts/copy.tsx';
import { useDesk } from '../../session/desk.tsx';
import { Code } from './code.tsx';
import { Door } from './door.tsx';
import { projectUrl, type Reader } from './examples.ts';

/** Getting started: the addresses, the ids and the credential, with first examples. */
export function First({ base, reader }: { base: string; reader: Reader }) {
  return (
    <>
      <h1>For developers</h1>
      <dl className="facts where">
        <Fact title="Address" value={reader.origin} />
        <Fact title="Organization" value={reader.organizationId} />
        <Fact title="Project" value={reader.projectId} />
      </dl>
      <p>
        To try it without a program: <Door to="/docs">the reference of v1</Door> and <Door to="/graphql">GraphiQL</Door> open signed in, as
        you are here. The documents: <a href="/v1/openapi.json">OpenAPI</a>, <a href="/v1/asyncapi.json">AsyncAPI</a>.
      </p>
      <Credential />
      <Examples base={base} reader={reader} />
    </>
  );
}

function Fact({ title, value }: { title: string; value: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <code>{value}</code> <CopyButton text={value} label={`Copy: ${title}`} />
      </dd>
    </div>
  );
}

function Credential() {
  const { session } = useDesk();
  return (
    <p>
      Each request has <code>Authorization: Bearer …</code> with an API key or a session token.{' '}
      {session.kind === 'key' ? (
        'You are signed in with an API key.'
      ) : (
        <>
          You are signed in with a session token, which ends; a program has <Link href="/keys">a key of its own</Link>.
        </>
      )}
    </p>
  );
}

const query = `query ($id: ID!) {
  project(id: $id) {
    name
    role
    unreadNotificationCount
    instances(first: 3) { totalCount nodes { id name status } }
  }
}`;

const subscription = `subscription ($organizationId: ID!, $projectId: ID!) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId) {
    ... on FeedReady { type sequence unreadCount }
    ... on NotificationAdded { type sequence notification { id severity title } }
    ... on NotificationsRead { type readThrough notificationIds unreadCount }
    ... on FeedGap { type from to }
  }
}`;

/** A curl command that sends a document and its variables. */
function toCurl(document: string, variables: object, { origin, key }: Reader, more = ''): string {
  const body = JSON.stringify({ query: document.replaceAll(/\s+/g, ' '), variables });
  return `curl -sS${more} -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\\n  -d '${body}' ${origin}/graphql`;
}

function Examples({ base, reader }: { base: string; reader: Reader }) {
  const { origin, organizationId, projectId, key } = reader;
  const to = (guide: string, title: string) => <Link href={`${base}/${guide}`}>{title}</Link>;
  return (
    <>
      <Example title="v1" more={to('v1', 'The v1 API')}>
        <Code text={`curl -sS -H "Authorization: Bearer ${key}" "${projectUrl(reader)}/notifications?unread=true&page_size=3"`} />
      </Example>
      <Example title="A GraphQL query" more={to('graphql', 'The GraphQL API')}>
        <Code text={query} />
        <Code text={toCurl(query, { id: projectId }, reader)} />
      </Example>
      <Example title="A subscription" more={to('feed', 'The notification feed')}>
        <p>Over a WebSocket (graphql-ws), or as server-sent events, which a shell can read:</p>
        <Code text={subscription} />
        <Code text={toCurl(subscription, { organizationId, projectId }, reader, 'N -H "Accept: text/event-stream"')} />
      </Example>
      <Example title="The command line" more={to('cli', 'The command line')}>
        <Code
          text={[
            `echo ${key} | portico login --url ${origin}`,
            `portico use ${projectId}`,
            'portico overview',
            'portico notifications --follow',
          ].join('\n')}
        />
      </Example>
    </>
  );
}

function Example({ title, more, children }: { title: string; more: ReactNode; children: ReactNode }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
      <p>More: {more}</p>
    </section>
  );
}
