import type { Http } from './http.ts';

const TOLERANCE_MS = 30_000;

/** A sentence about the clock of this machine if it differs from the server's by more than 30 s, otherwise an empty string. */
export async function describeClock(http: Http, signal: AbortSignal): Promise<string> {
  try {
    const { headers } = await http.once.send(new Request(http.address('/health/live'), { method: 'HEAD', signal }), 'never');
    const aheadMs = Date.now() - Date.parse(headers.get('date') ?? '');
    if (!(Math.abs(aheadMs) > TOLERANCE_MS)) return '';
    return ` The clock of this machine is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the server’s.`;
  } catch {
    return '';
  }
}
