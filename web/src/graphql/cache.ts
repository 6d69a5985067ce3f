import { InMemoryCache } from '@apollo/client';

/** Objects with an id are normalized; lists are cached for each set of arguments, so that a single page can be evicted. */
export function createCache(): InMemoryCache {
  return new InMemoryCache({
    possibleTypes: {
      User: ['Viewer', 'Colleague'],
      FeedEvent: ['FeedGap', 'FeedReady', 'NotificationAdded', 'NotificationsRead'],
    },
    typePolicies: {
      Query: {
        fields: {
          // An item that a list has loaded is found by its id without a request.
          project: (existing, { args, toReference }) => existing ?? toReference({ __typename: 'Project', id: args?.id }),
        },
      },
      Notification: {
        fields: {
          // What has been read stays so: a response that says otherwise was written before.
          read: { merge: (_existing: unknown, incoming: boolean, { existingData }) => existingData === true || incoming },
        },
      },
      Project: {
        fields: {
          computeOverview: { merge: true },
          instance: (existing, { args, toReference }) => existing ?? toReference({ __typename: 'Instance', id: args?.id }),
          dashboard: (existing, { args, toReference }) => existing ?? toReference({ __typename: 'Dashboard', id: args?.id }),
        },
      },
    },
  });
}
