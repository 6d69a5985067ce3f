// Figures as Markdown.
import { bothCpu, pacedP99, ratio } from './compare.mjs';

/** @param {string[]} head @param {Array<Array<string | number>>} rows */
export function table(head, rows) {
  const line = (/** @type {Array<string | number>} */ cells) => `| ${cells.join(' | ')} |`;
  const isNumber = (/** @type {number} */ column) => rows.every((row) => /^[\d.,–]+( (✓|✗))?$/.test(String(row[column])));
  return [line(head), line(head.map((_, column) => (isNumber(column) ? '---:' : '---'))), ...rows.map(line)].join('\n');
}

/** A rounded figure, or a dash if there is none: for example, if no request was answered in time. @param {number} value */
export function short(value) {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toLocaleString('en', { maximumFractionDigits: 0 }) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/**
 * One row for each operation and server: the cost of a request, and its latency at a fixed rate.
 * @param {import('./compare.mjs').Row[]} rows
 */
export function comparison(rows) {
  const isOurs = (/** @type {import('./compare.mjs').Row} */ { server }) => server === 'portico';
  const ratioTo = (/** @type {import('./compare.mjs').Row} */ row, /** @type {typeof bothCpu} */ figureOf) =>
    isOurs(row) ? '–' : short(ratio(rows, row.operation, row.server, figureOf));
  const costs = table(
    [
      'operation',
      'server',
      'requests/s',
      'CPU µs/request: Node',
      'PostgreSQL',
      'both',
      'Portico’s both : its',
      'p50 ms',
      'p99 ms',
      'RSS MiB',
    ],
    rows.map((row) => [
      isOurs(row) ? row.operation : '',
      row.server,
      short(row.figures.requestsPerSecond),
      short(row.figures.cpuMicros),
      short(row.figures.postgresMicros),
      short(row.figures.bothMicros),
      ratioTo(row, bothCpu),
      short(row.figures.p50),
      short(row.figures.p99),
      short(row.figures.memory),
    ]),
  );
  const paced = table(
    ['operation', 'server', 'requests/s sent', 'p50 ms', 'p99 ms', 'Portico’s p99 : its'],
    rows.flatMap((row) =>
      row.paced
        ? [
            [
              isOurs(row) ? row.operation : '',
              row.server,
              short(row.paced.rate),
              short(row.paced.p50),
              short(row.paced.p99),
              ratioTo(row, pacedP99),
            ],
          ]
        : [],
    ),
  );
  return [costs, 'At a fixed rate, half of what the slowest of these reaches:', paced].join('\n\n');
}

/** A figure of Portico's and the bound that it must keep. @typedef {{what: string, figure: number, bound: number, atLeast?: boolean, unit?: string}} Claim */

/** @param {Claim[]} claims */
export function verdict(claims) {
  return table(
    ['what', 'figure', 'bound', ''],
    claims.map(({ what, figure, bound, atLeast = false, unit = '' }) => [
      what,
      short(figure) + unit,
      `${atLeast ? '≥' : '≤'} ${bound}${unit}`,
      (atLeast ? figure >= bound : figure <= bound) ? 'yes' : '**no**',
    ]),
  );
}
