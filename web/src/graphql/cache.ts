import { InMemoryCache } from '@apollo/client';

/** Everything with an id is kept once; a list is kept for each of its arguments, so that a page of it can be forgotten alone. */
export function createCache(): InMemoryCache {
  return new InMemoryCache({
    possibleTypes: {
      User: ['Viewer', 'Colleague'],
      FeedEvent: ['FeedGap', 'FeedReady', 'NotificationAdded', 'NotificationsRead'],
    },
    typePolicies: {
      Query: {
        fields: {
          // Whoever has a list has its items.
          project: (existing, { args, toReference }) => existing ?? toReference({ __typename: 'Project', id: args?.id }),
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
