// @ts-nocheck: for Relay's compiler to read; nothing runs it.
import { graphql } from 'relay-runtime';

export const panel = graphql`
  query PanelQuery {
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

export const instance = graphql`
  query PanelInstanceQuery($id: ID!) {
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

export const list = graphql`
  fragment Panel_notifications on Project
  @refetchable(queryName: "PanelNotificationsQuery")
  @argumentDefinitions(first: { type: "Int" }, after: { type: "String" }, last: { type: "Int" }, before: { type: "String" }) {
    notifications(first: $first, after: $after, last: $last, before: $before) @connection(key: "Panel_notifications") {
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
`;

export const mark = graphql`
  mutation PanelMarkMutation($input: MarkNotificationsReadInput!) {
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

export const feed = graphql`
  subscription PanelFeedSubscription($organizationId: ID!, $projectId: ID!) {
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
