import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRestingApp, type TestApp } from '../support/app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startRestingApp();
});
afterAll(() => app.close());

it('a key whose last use cannot be written is admitted, and the write is not tried again with each request', async () => {
  const created = await app.graphql('mutation { createApiKey(input: { name: "unwritable" }) { key } }');
  const { key } = created.json.data.createApiKey;
  await app.app.database.prisma.$executeRawUnsafe('ALTER TABLE api_keys ADD CONSTRAINT never_used CHECK (last_used IS NULL) NOT VALID');
  app.statements.length = 0;
  for (let request = 0; request < 3; request++) {
    const response = await app.ask('GET', `${app.projectPath}/compute/overview`, { as: { bearer: key } });
    expect(response.status).toBe(200);
  }
  expect(app.statements.filter((sql) => sql.includes('UPDATE api_keys'))).toHaveLength(1);
});
