import { scaleBand, scaleLinear } from '@visx/scale';
import { BarStackHorizontal } from '@visx/shape';
import { Link } from 'wouter';
import { toneOf } from './badge.tsx';
import { formatNumber, toWords } from './format.ts';

interface Share {
  readonly status: string;
  readonly count: number;
  /** The address of the list with this status. */
  readonly to?: string;
}

const WIDTH = 1000;
const HEIGHT = 12;

/** The counts by status as one stacked bar, and as a table beside it. */
export function StatusBar({ caption, shares }: { caption: string; shares: readonly Share[] }) {
  const total = shares.reduce((sum, { count }) => sum + count, 0);
  const keys = shares.filter(({ count }) => count > 0).map(({ status }) => status);
  const row = Object.fromEntries(shares.map(({ status, count }) => [status, count]));
  return (
    <figure className="status-bar">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <BarStackHorizontal
          data={[row]}
          keys={keys}
          y={() => 0}
          xScale={scaleLinear({ domain: [0, Math.max(1, total)], range: [0, WIDTH] })}
          yScale={scaleBand({ domain: [0], range: [0, HEIGHT] })}
          color={(key) => key}
        >
          {(stacks) =>
            stacks.flatMap(({ bars }) =>
              bars.map(({ key, x, width }) => (
                <rect key={key} className="share" data-tone={toneOf(key)} x={x} y={0} width={Math.max(0, width - 2)} height={HEIGHT} />
              )),
            )
          }
        </BarStackHorizontal>
      </svg>
      <table>
        <caption>
          {caption}: {formatNumber(total)}
        </caption>
        <tbody>
          {shares.map(({ status, count, to }) => (
            <tr key={status} className={count === 0 ? 'zero' : undefined}>
              <th scope="row">
                <i className="dot" data-tone={toneOf(status)} aria-hidden="true" />
                {to ? <Link href={to}>{toWords(status)}</Link> : toWords(status)}
              </th>
              <td>{formatNumber(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
