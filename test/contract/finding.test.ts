import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { runCases } from '../support/doors.ts';
import { findingCases } from './cases/finding.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

runCases(() => app, findingCases);

it('a client that has a key alone can reach every instance, its trial and its tasks', async () => {
  const as = { bearer: app.demo.users.member.api_key };
  const get = async (path: string) => {
    const { status, json } = await app.ask('GET', path, { as });
    expect(status, path).toBe(200);
    return json;
  };
  /** All pages, by the links alone. */
  const walk = async (path: string): Promise<Array<{ id: string; instance?: string | null }>> => {
    const { results, next } = await get(path);
    return next ? [...results, ...(await walk(next.slice(app.baseUrl.length)))] : results;
  };
  const found: string[] = [];
  for (const organization of await walk('/v1/organizations?page_size=1')) {
    for (const project of await walk(`/v1/organizations/${organization.id}/projects?page_size=1`)) {
      const compute = `/v1/organizations/${organization.id}/projects/${project.id}/compute`;
      const instances = await walk(`${compute}/instances?page_size=7`);
      for (const instance of instances.slice(0, 3)) {
        expect(await get(`${compute}/instances/${instance.id}`)).toEqual(instance);
        expect(await get(`${compute}/instances/${instance.id}/backup-trial`)).toHaveProperty('eligible');
      }
      const tasks = await walk(`${compute}/tasks?page_size=9`);
      expect(tasks.length).toBeGreaterThan(10);
      const [overview] = await get(`${compute}/overview`);
      expect(new Set(instances.map(({ id }) => id)).size).toBe(overview.instances_total);
      found.push(project.id);
    }
  }
  expect(found).toEqual([app.demo.project_id]);
});
