import { readFileSync } from 'node:fs';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/platform/packageroot.ts';
import { isPostgres, startApp, type TestApp } from '../support/app.ts';

const read = (path: string) => readFileSync(new URL(path, packageRoot), 'utf8');

/** Each rule of deploy/alerts.yaml, as its text. */
const rules = read('deploy/alerts.yaml')
  .split(/^ {6}- alert: /m)
  .slice(1);
const nameOf = (rule: string) => rule.slice(0, rule.indexOf('\n'));
/** The expression is followed by `for` or by `labels`. */
const expressionOf = (rule: string) => /^ {8}expr: ([\s\S]*?)\n {8}(?:for|labels):/m.exec(rule)?.[1] ?? '';
const metricsIn = (text: string) => text.match(/\b(?:portico|process|nodejs)_\w+|\bup\b/g) ?? [];

let app: TestApp;
/** The labels of every metric, by the names under which Prometheus stores it. */
const labelsByName = new Map<string, readonly string[]>([['up', []]]);
beforeAll(async () => {
  app = await startApp();
  const node = new Registry();
  collectDefaultMetrics({ register: node });
  // The embedded database has no connections.
  if (!isPostgres) labelsByName.set('portico_database_connections', ['state']);
  for (const metric of [...app.app.metrics.registry.getMetricsAsArray(), ...node.getMetricsAsArray()]) {
    // The declarations of prom-client omit the names of the labels.
    const { name, labelNames } = metric as unknown as Metric & { readonly name: string; readonly labelNames: readonly string[] };
    labelsByName.set(name, labelNames);
    labelsByName.set(`${name}_count`, labelNames);
    labelsByName.set(`${name}_bucket`, [...labelNames, 'le']);
  }
});
afterAll(() => app.close());

describe('deploy/alerts.yaml', () => {
  it('reads only metrics and labels that exist', () => {
    expect(rules.length).toBeGreaterThan(20);
    for (const rule of rules) {
      const expression = expressionOf(rule);
      const names = metricsIn(expression);
      expect(names, nameOf(rule)).not.toEqual([]);
      const known = ['job', 'instance', ...names.flatMap((name) => labelsByName.get(name) ?? [`no metric ${name}`])];
      const matched = [...expression.matchAll(/(\w+)=~?"/g)].map(([, label]) => label);
      const grouped = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(', '));
      const shown = [...rule.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
      expect(known, nameOf(rule)).toEqual(expect.arrayContaining([...matched, ...grouped, ...shown]));
      for (const name of names) expect([...labelsByName.keys()], nameOf(rule)).toContain(name);
    }
  });

  it('reads only label values that are exported from the start', async () => {
    const { text } = await app.ask('GET', '/metrics', { as: null });
    const lines = text.split('\n');
    for (const [selector, name, label = ''] of rules.join('').matchAll(/(portico_\w+)\{(\w+="[^"]*")\}/g)) {
      // A status and an error appear with their first response; the embedded database has no connections.
      if (label.startsWith('status=') || name === 'portico_errors_total' || (name === 'portico_database_connections' && !isPostgres))
        continue;
      expect(
        lines.some((line) => line.startsWith(`${name}{`) && line.includes(label)),
        selector,
      ).toBe(true);
    }
  });

  it('has a rule for each alarm of docs/operations.md, and no other', () => {
    const table = /\| metric \| alarm when [\s\S]*?\n\n/.exec(read('docs/operations.md'))?.[0] ?? '';
    const rows = table.split('\n').map((row) => row.split('|').slice(1, 3));
    const alarms = rows.filter(([, alarm = '']) => /[a-z0-9]/.test(alarm)).slice(1);
    expect(alarms.length).toBeGreaterThan(15);
    const watched = rules.flatMap((rule) => metricsIn(expressionOf(rule)));
    // The second alarm of a metric has a row without a name.
    for (const [metrics = ''] of alarms)
      if (metrics.trim() !== '')
        expect(watched, metrics).toEqual(expect.arrayContaining([expect.stringContaining(metricsIn(metrics)[0] ?? 'none')]));
    for (const name of watched) expect(table).toContain(name.replace(/_(bucket|count)$/, ''));
  });

  it('has a severity, a summary and a runbook for each rule', () => {
    const sections = new Set(
      [...read('docs/operations.md').matchAll(/^## (.+)$/gm)].map(([, title = '']) => title.toLowerCase().replaceAll(' ', '-')),
    );
    for (const rule of rules) {
      expect(rule, nameOf(rule)).toMatch(/^ {8}labels: \{ severity: (page|ticket) \}$/m);
      expect(rule, nameOf(rule)).toMatch(/^ {10}summary: \S/m);
      expect([...sections], nameOf(rule)).toContain(/^ {10}runbook: docs\/operations\.md#(\S+)$/m.exec(rule)?.[1]);
    }
    expect(new Set(rules.map(nameOf)).size).toBe(rules.length);
  });

  it('has a test in deploy/alerts.test.yaml for each rule', () => {
    const tests = read('deploy/alerts.test.yaml');
    for (const rule of rules) expect(tests).toContain(`alertname="${nameOf(rule)}"`);
  });
});
