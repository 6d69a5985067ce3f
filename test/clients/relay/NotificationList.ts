// @ts-nocheck: for Relay's compiler to read; nothing runs it.
import { graphql } from 'relay-runtime';

export const list = graphql`
  fragment NotificationList_query on Query
  @refetchable(queryName: "NotificationListNextQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, cursor: { type: "String" }) {
    project(organizationId: $organizationId, id: $projectId) {
      id
      notifications(first: $count, after: $cursor) @connection(key: "NotificationList_notifications") {
        edges {
          cursor
          node {
            id
            sequence
            title
            severity
            read
          }
        }
        pageInfo {
          hasNextPage
          endCursor
        }
      }
    }
  }
`;

export const query = graphql`
  query NotificationListQuery($organizationId: ID!, $projectId: ID!) {
    ...NotificationList_query
  }
`;

export const mark = graphql`
  mutation NotificationListMarkMutation($input: MarkNotificationsReadInput!) {
    markNotificationsRead(input: $input) {
      marked
      unreadCount
    }
  }
`;

export const feed = graphql`
  subscription NotificationListFeedSubscription($organizationId: ID!, $projectId: ID!, $after: Int) {
    notificationFeed(organizationId: $organizationId, projectId: $projectId, after: $after) {
      __typename
      ... on NotificationAdded {
        sequence
        notification {
          id
          title
        }
      }
    }
  }
`;
