import { Client, fetchExchange } from '@urql/core';
import { persistedExchange } from '@urql/exchange-persisted';
import { expect, it } from 'vitest';
import { startApp } from '../support/app.ts';

it.each([{}, { preferGetForPersistedQueries: false }, { enableForMutation: true }] as const)(
  'urql’s exchange for persisted queries gets its responses, with %j: it sends one hash, and texts from then on',
  async (options) => {
    const app = await startApp();
    try {
      const sent: string[] = [];
      const client = new Client({
        url: `${app.baseUrl}/graphql`,
        preferGetMethod: false,
        exchanges: [persistedExchange(options), fetchExchange],
        fetchOptions: { headers: { authorization: `Bearer ${app.demo.users.owner.token}` } },
        fetch: (url, request) => {
          const { query } = request?.body ? JSON.parse(String(request.body)) : Object.fromEntries(new URL(String(url)).searchParams);
          sent.push(query ? 'text' : 'hash');
          return fetch(url, request);
        },
      });
      for (const document of ['query One { viewer { id } }', 'query Two { viewer { name } }']) {
        const { data, error } = await client.query(document, {}).toPromise();
        expect([error, data?.viewer]).toEqual([undefined, expect.any(Object)]);
      }
      expect(sent).toEqual(['hash', 'text', 'text']);
    } finally {
      await app.close();
    }
  },
);
