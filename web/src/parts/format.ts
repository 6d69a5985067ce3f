/** Numbers and exact dates in the reader's locale. */
const integer = new Intl.NumberFormat();
const oneDigit = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });
// Not 'yesterday' and 'last month': 26 hours ago may be either side of two midnights.
const relative = new Intl.RelativeTimeFormat('en', { style: 'narrow' });

export const formatNumber = (value: number) => integer.format(value);
export const formatExact = (moment: string | number | Date) => exact.format(new Date(moment));

const steps = [
  ['second', 60],
  ['minute', 60],
  ['hour', 24],
  ['day', 30],
  ['month', 12],
  ['year', Number.POSITIVE_INFINITY],
] as const;

/** `now`, `3m ago`, `in 2d`. */
export function formatRelative(moment: string | number | Date, now = Date.now()): string {
  let value = (new Date(moment).getTime() - now) / 1000;
  for (const [unit, size] of steps) {
    const rounded = Math.round(value);
    if (rounded === 0) return 'now';
    if (Math.abs(rounded) < size) return relative.format(rounded, unit);
    value /= size;
  }
  return '';
}

/** `45 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ] as const;
  const from = parts.findIndex(([value]) => value > 0);
  const shown = from < 0 ? parts.slice(-1) : parts.slice(from, from + 2).filter(([value], index) => index === 0 || value > 0);
  return shown.map(([value, unit]) => `${value} ${unit}`).join(' ');
}

/** How long somebody has to wait: `45 s`, and above 90 s `60 min`. */
export const formatWait = (seconds: number): string => (seconds > 90 ? `${Math.ceil(seconds / 60)} min` : `${seconds} s`);

/** `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? integer.format(Math.round(value)) : oneDigit.format(value)} ${units[power]}`;
}

/** `instance_not_active` → `instance not active`; `failed` → `failed`. */
export const toWords = (name: string) => name.replaceAll('_', ' ');

/** An id shortened for a column; its two ends identify it. */
export const shortenId = (id: string) => (id.length > 16 ? `${id.slice(0, 6)}…${id.slice(-6)}` : id);
