import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isPostgres } from '../support/app.ts';
import { type DeskTest, type Page, startDesk } from './support.ts';

/** On the embedded database there is one process, and nobody to take its place. */
describe.runIf(isPostgres)('two replicas', () => {
  let desk: DeskTest;
  let page: Page;
  beforeAll(async () => {
    desk = await startDesk();
    page = await desk.open();
    await desk.signIn(page, 'owner');
    await page.locator('.connection[data-state="live"]').waitFor();
  });
  afterAll(() => desk?.close());

  const publish = (title: string) =>
    desk.graphql('mutation ($input: PublishNotificationInput!) { publishNotification(input: $input) { notification { id } } }', {
      input: { organizationId: desk.demo.organization_id, projectId: desk.demo.project_id, kind: 'test.desk', severity: 'info', title },
    });
  const shown = () => page.locator('.newest').innerText();
  const isReady = async (index: number) => (await desk.fleet?.replicas[index]?.isReady()) ?? false;

  it.each([0, 1])('no notification is missed while replica %i is killed and restarted', async (index) => {
    const replica = desk.fleet?.replicas[index];
    await replica?.kill();
    // What the balancer does not know yet it finds out within a quarter of a second.
    await expect
      .poll(() =>
        publish(`Meanwhile ${index}`).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await expect.poll(shown).toContain(`Meanwhile ${index}`);
    await page.locator('.connection[data-state="live"]').waitFor();
    await replica?.start();
    await expect.poll(() => isReady(index)).toBe(true);
  });

  it('the page shows an outage of both, keeps its data, and recovers automatically', async () => {
    for (const replica of desk.fleet?.replicas ?? []) await replica.kill();
    await page.locator('.connection:not([data-state="live"])').waitFor();
    expect(await page.getByRole('heading', { name: 'Needs attention' }).isVisible()).toBe(true);
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    await page.locator('[data-code="unreachable"]').waitFor();
    await page.goBack();
    for (const replica of desk.fleet?.replicas ?? []) await replica.start();
    await page.locator('.connection[data-state="live"]').waitFor();
    await publish('Back again');
    await expect.poll(shown).toContain('Back again');
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    await page.getByRole('grid').waitFor();
  });

  it('makes no requests to other hosts, and logs no errors', () => {
    expect([desk.elsewhere, desk.complaints]).toEqual([[], []]);
  });
});
