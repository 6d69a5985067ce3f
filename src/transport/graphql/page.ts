import { contentPolicy } from '../pages.ts';
import { examples } from '../rest/examples.ts';

/** The page has all its assets within, in scripts and styles of its own. */
export const graphiqlPolicy = contentPolicy({
  'script-src': "'unsafe-inline'",
  'style-src': "'unsafe-inline'",
  'img-src': 'data:',
  'font-src': 'data:',
  'connect-src': "'self'",
  'worker-src': 'blob:',
});

/** GraphiQL, some nine megabytes: loaded when somebody first asks for it. */
export async function renderPage(): Promise<string> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  // Without this the page would write each query into its address, which answers with JSON when it is reloaded.
  const keepAddress = { onEditQuery: null };
  const page = renderGraphiQL({
    title: 'Portico',
    headers,
    defaultTabs: tabs.map((tab) => ({ headers, ...tab })),
    inputValueDeprecation: true,
    ...keepAddress,
  });
  return page.replace('<div id="root"></div>', `<div id="root"></div><script>${recall}</script>`);
}

/** GraphiQL remembers its tabs, but opens an empty one beside them unless what it remembers last is what the active one has. */
const recall = `{
  const { tabs = [], activeTabIndex = 0 } = JSON.parse(localStorage.getItem('graphiql:tabState') || '{}');
  for (const name of ['query', 'variables', 'headers']) {
    const value = tabs[activeTabIndex]?.[name];
    if (value) localStorage.setItem('graphiql:' + name, value);
    else localStorage.removeItem('graphiql:' + name);
  }
}`;

/** As a comment, so that the schema is there before there is a token. */
const headers = `{
  // Remove the slashes, and put a token or a key here:
  // "Authorization": "Bearer …"
}`;

const { organization_id: organizationId, project_id: projectId } = examples.operations.compute_overview?.parameters ?? {};
const place = { organizationId, projectId };

const tabs = [
  {
    query: `# Every request takes one header, "Authorization":
# the tab "Headers" below has it, as a comment.
#
# The demo's tokens and keys are in the file demo.json
# of the data folder (.portico), by user:
#   owner, admin   may do everything
#   member         may also write dashboards
#   viewer         reads
#   outsider       belongs to another organization
#
# The next tabs: a project's figures, its live feed, and
# a notification to publish.
query WhoAmI {
  viewer {
    name
    email
    organizations {
      nodes {
        id
        name
        role
        projects {
          nodes {
            id
            name
            role
          }
        }
      }
    }
  }
}
`,
  },
  {
    query: `# What needs attention in a project.
# The variables below name the demo's.
query Overview($organizationId: ID!, $projectId: ID!) {
  project(organizationId: $organizationId, id: $projectId) {
    name
    role
    unreadNotificationCount
    computeOverview {
      instancesTotal
      attention {
        instancesSuspended
        tasksStuck
      }
    }
    instances(first: 5, filter: { attention: suspended }) {
      nodes {
        name
        status
        backupTrial {
          eligible
          blockers
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
    notifications(first: 3, filter: { unread: true }) {
      nodes {
        sequence
        severity
        title
        created
      }
    }
  }
}
`,
    variables: JSON.stringify(place, null, 2),
  },
  {
    query: `# The live feed: first what came after the number "after",
# then FeedReady, then what comes. Run it, and publish
# from another window: it shows here at once.
subscription Feed($organizationId: ID!, $projectId: ID!, $after: Int) {
  notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
    __typename
    ... on FeedReady {
      sequence
      unreadCount
    }
    ... on NotificationAdded {
      sequence
      notification {
        severity
        title
        created
      }
    }
    ... on NotificationsRead {
      readThrough
      notificationIds
      unreadCount
    }
    ... on FeedGap {
      from
      to
    }
  }
}
`,
    variables: JSON.stringify({ ...place, after: 148 }, null, 2),
  },
  {
    query: `# Appends a notification to the project's log.
# This needs the role "admin".
mutation Publish($input: PublishNotificationInput!) {
  publishNotification(input: $input) {
    notification {
      id
      sequence
    }
  }
}
`,
    variables: JSON.stringify(
      { input: { ...place, kind: 'maintenance.scheduled', severity: 'info', title: 'Published from GraphiQL' } },
      null,
      2,
    ),
  },
];
