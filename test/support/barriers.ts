import { expect } from 'vitest';

/** What is asked of Playwright's page, of which test/clients and test/web each install their own. */
interface EvaluatingPage {
  evaluate(script: string): Promise<unknown>;
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary: string }>;
}

/** The rules about colours: whether a page passes the others does not depend on its colour scheme. */
export const colourRules = ['color-contrast', 'link-in-text-block'];

/**
 * What axe finds that is serious or critical on the page as it is now, by all of its rules unless some are named. A page is given
 * the script `axe` once: its compilation takes longer than what it does. The content policy has no place for a script of the page:
 * this one is the browser's own.
 */
export async function findBarriers(page: EvaluatingPage, axe: string, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe);
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) });
  const run = `axe.run(document, ${options}).then(({ violations, passes }) => ({ violations, passed: passes.length }))`;
  const { violations, passed } = (await page.evaluate(run)) as { violations: Violation[]; passed: number };
  // Otherwise axe has looked at an empty page.
  if (!rules) expect(passed).toBeGreaterThan(10);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`));
}
