// Figures as Markdown.

/** @param {string[]} head @param {Array<Array<string | number>>} rows */
export function table(head, rows) {
  const line = (/** @type {Array<string | number>} */ cells) => `| ${cells.join(' | ')} |`;
  const isNumber = (/** @type {number} */ column) => rows.every((row) => /^[\d.,–]+( (✓|✗))?$/.test(String(row[column])));
  return [line(head), line(head.map((_, column) => (isNumber(column) ? '---:' : '---'))), ...rows.map(line)].join('\n');
}

/** A dash for what there is none of: where no request was answered within the time, for instance. @param {number} value */
export function short(value) {
  if (!Number.isFinite(value)) return '–';
  return value >= 100 ? value.toLocaleString('en', { maximumFractionDigits: 0 }) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/**
 * One row a server for each operation; the ratio is that of Portico's CPU a request to the server's.
 * @param {import('./compare.mjs').Row[]} rows
 */
export function comparison(rows) {
  const portico = new Map(rows.filter(({ server }) => server === 'portico').map(({ operation, figures }) => [operation, figures]));
  return table(
    ['operation', 'server', 'requests/s', 'CPU µs/request', 'p50 ms', 'p99 ms', 'RSS MiB', 'Portico’s CPU : its'],
    rows.map(({ operation, server, figures }) => [
      server === 'portico' ? operation : '',
      server,
      short(figures.requestsPerSecond),
      short(figures.cpuMicros),
      short(figures.p50),
      short(figures.p99),
      short(figures.memory),
      server === 'portico'
        ? '–'
        : short(Number(portico.get(operation)?.cpuMicros) / (figures.requestsPerSecond > 0 ? figures.cpuMicros : Number.NaN)),
    ]),
  );
}

/** What must be shown: a figure of ours, and how it may stand to what it is held against. @typedef {{what: string, figure: number, bound: number, atLeast?: boolean, unit?: string}} Claim */

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
