import { toWords } from './format.ts';

/** Each status has one of six tones. A badge also has the word, as colour alone is not accessible. */
const tones: Readonly<Record<string, Tone>> = {
  active: 'good',
  succeeded: 'good',
  attached: 'good',
  running: 'busy',
  pending: 'busy',
  provisioning: 'busy',
  rebuilding: 'busy',
  resizing: 'busy',
  detached: 'busy',
  converted: 'good',
  warning: 'warning',
  suspended: 'warning',
  throttled: 'warning',
  cancelled: 'idle',
  stopped: 'idle',
  deleted: 'idle',
  over: 'idle',
  expired: 'idle',
  info: 'info',
  failed: 'critical',
  error: 'critical',
  critical: 'critical',
};
type Tone = 'good' | 'busy' | 'info' | 'idle' | 'warning' | 'critical';
export const toneOf = (status: string): Tone => tones[status] ?? 'idle';

export function Badge({ value }: { value: string }) {
  return (
    <span className="badge" data-tone={toneOf(value)}>
      {toWords(value)}
    </span>
  );
}
