/** What the panel of a client shows, read from its cache alone. */
export interface Shown {
  readonly organizations: ReadonlyArray<{ readonly id: string; readonly name: string; readonly projects: readonly ShownProject[] }>;
}

interface ShownProject {
  readonly id: string;
  readonly name: string;
  readonly unreadNotificationCount: number;
  readonly instances: ReadonlyArray<{
    readonly id: string;
    readonly name: string;
    readonly status: string;
    readonly trial: string | null;
    readonly tasks: ReadonlyArray<{ readonly id: string; readonly status: string; readonly instance: string | null }>;
  }>;
}

export interface ShownNotification {
  readonly id: string;
  readonly sequence: number;
  readonly title: string;
  readonly read: boolean;
}

interface ShownPage {
  readonly items: readonly ShownNotification[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

/** The same panel in the clients of several makers, each as its own documentation has it. */
export interface Panel {
  /** Reads organizations, their projects, their instances with trial and tasks, and the instance of each task. */
  load(): Promise<void>;
  shown(): Shown;
  /** Reads an instance anew by `node`. */
  refetchInstance(id: string): Promise<void>;
  /** Reads the first part of the notifications, or the last. */
  openNotifications(from: 'first' | 'last', count: number): Promise<void>;
  loadMore(direction: 'next' | 'previous', count: number): Promise<void>;
  notifications(): ShownPage;
  mark(ids: readonly string[]): Promise<void>;
  /** Puts the events of the feed into the cache, until what is returned is called. Resolves at the boundary. */
  follow(): Promise<() => void>;
  close(): void;
}

export interface PanelOptions {
  readonly url: string;
  readonly socketUrl: string;
  readonly token: string;
  readonly organizationId: string;
  readonly projectId: string;
}

interface Connection<Node> {
  readonly edges: ReadonlyArray<{ readonly node: Node }>;
}

/** The response of the panel's query, the same for all clients. */
export interface PanelData {
  readonly viewer: {
    readonly organizations: Connection<{
      readonly id: string;
      readonly name: string;
      readonly projects: Connection<{
        readonly id: string;
        readonly name: string;
        readonly unreadNotificationCount: number;
        readonly instances: Connection<{
          readonly id: string;
          readonly name: string;
          readonly status: string;
          readonly backupTrial: { readonly trial: { readonly status: string } | null };
          readonly tasks: Connection<{ readonly id: string; readonly status: string; readonly instance: { readonly name: string } | null }>;
        }>;
      }>;
    }>;
  };
}

export interface NotificationsData {
  readonly edges: ReadonlyArray<{ readonly node: ShownNotification }>;
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

export function showPanel({ viewer }: PanelData): Shown {
  const nodes = <Node>({ edges }: Connection<Node>) => edges.map(({ node }) => node);
  return {
    organizations: nodes(viewer.organizations).map(({ id, name, projects }) => ({
      id,
      name,
      projects: nodes(projects).map((project) => ({
        id: project.id,
        name: project.name,
        unreadNotificationCount: project.unreadNotificationCount,
        instances: nodes(project.instances).map((instance) => ({
          id: instance.id,
          name: instance.name,
          status: instance.status,
          trial: instance.backupTrial.trial?.status ?? null,
          tasks: nodes(instance.tasks).map((task) => ({ id: task.id, status: task.status, instance: task.instance?.name ?? null })),
        })),
      })),
    })),
  };
}

export function showPage({ edges, pageInfo }: NotificationsData): ShownPage {
  const items = edges.map(({ node: { id, sequence, title, read } }) => ({ id, sequence, title, read }));
  return { items, hasNextPage: pageInfo.hasNextPage, hasPreviousPage: pageInfo.hasPreviousPage };
}

export const panelQuery = `
  query Panel {
    viewer {
      id
      organizations(first: 5) {
        edges {
          node {
            id
            name
            projects(first: 5) {
              edges {
                node {
                  id
                  name
                  unreadNotificationCount
                  instances(first: 10) {
                    edges {
                      node {
                        id
                        name
                        status
                        backupTrial {
                          eligible
                          trial {
                            id
                            status
                          }
                        }
                        tasks(first: 3) {
                          edges {
                            node {
                              id
                              status
                              instance {
                                id
                                name
                              }
                            }
                          }
                        }
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
`;

export const instanceQuery = `
  query InstanceRefetch($id: ID!) {
    node(id: $id) {
      __typename
      id
      ... on Instance {
        name
        status
      }
    }
  }
`;

export const notificationsQuery = `
  query Notifications($organizationId: ID!, $projectId: ID!, $first: Int, $after: String, $last: Int, $before: String) {
    project(organizationId: $organizationId, id: $projectId) {
      id
      notifications(first: $first, after: $after, last: $last, before: $before) {
        edges {
          cursor
          node {
            id
            sequence
            title
            read
          }
        }
        pageInfo {
          hasNextPage
          hasPreviousPage
          startCursor
          endCursor
        }
      }
    }
  }
`;

export const markMutation = `
  mutation Mark($input: MarkNotificationsReadInput!) {
    markNotificationsRead(input: $input) {
      project {
        id
        unreadNotificationCount
      }
      notifications {
        id
        read
      }
    }
  }
`;

export const feedSubscription = `
  subscription Feed($organizationId: ID!, $projectId: ID!) {
    notificationFeed(organizationId: $organizationId, projectId: $projectId) {
      __typename
      ... on FeedReady {
        unreadCount
      }
      ... on NotificationAdded {
        notification {
          id
          sequence
          title
          read
        }
      }
      ... on NotificationsRead {
        notificationIds
        readThrough
        unreadCount
      }
    }
  }
`;

/** An event of the feed, the same for all clients. */
export type FeedEvent =
  | { readonly __typename: 'FeedReady'; readonly unreadCount: number }
  | { readonly __typename: 'FeedGap' }
  | { readonly __typename: 'NotificationAdded'; readonly notification: ShownNotification }
  | {
      readonly __typename: 'NotificationsRead';
      readonly notificationIds: readonly string[];
      readonly readThrough: number;
      readonly unreadCount: number;
    };
