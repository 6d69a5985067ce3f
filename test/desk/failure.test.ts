import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { connect } from 'portico-client';
import { expect, it } from 'vitest';
import { porticoLink, toFailure } from '../../web/src/graphql/link.ts';

/** What the desk makes of a response of the server. */
async function fail(status: number, body: unknown) {
  const fetch = async () => Object.defineProperty(Response.json(body, { status }), 'url', { value: 'http://localhost/graphql' });
  const link = porticoLink(connect({ url: 'http://localhost', credential: 'x', fetch }));
  const client = new ApolloClient({ link, cache: new InMemoryCache() });
  return toFailure(await client.query({ query: gql('{ viewer { id } }') }).catch((error: unknown) => error));
}

const fields = { name: ['This field may not be blank.'], expires: ['Must be in the future.'] };
const errors = [{ message: 'Some fields are not valid.', extensions: { code: 'validation_failed', fields } }];

it.each([200, 400])('the desk names the fields that are not valid, with the status %i', async (status) => {
  expect(await fail(status, { errors })).toEqual({
    code: 'validation_failed',
    message: 'name: This field may not be blank. expires: Must be in the future.',
    fields,
    context: {},
    retryAfterMs: null,
  });
});

it('the desk has the sentence of any other error', async () => {
  const context = { quota: 'keys_per_user', limit: 3 };
  const message = 'The user has as many API keys as they may have.';
  const conflict = await fail(200, { errors: [{ message, extensions: { code: 'conflict', context } }] });
  expect(conflict).toEqual({ code: 'conflict', message, fields: {}, context, retryAfterMs: null });
});
