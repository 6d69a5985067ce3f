/** The first and the last moment of the years that ISO 8601 and RFC 3339 write with four digits. */
export const FIRST_TIMESTAMP = '0001-01-01T00:00:00.000Z';
export const LAST_TIMESTAMP = '9999-12-31T23:59:59.999Z';

/**
 * Reads a `timestamptz` as PostgreSQL writes it in UTC, the time zone of all our connections: `2026-01-31 12:00:00.123456+00`.
 * Another program may have stored a moment without end or outside of those years, which no response could hold: it is read as
 * the first or the last of them.
 */
export function readTimestamp(text: string): Date {
  const end = text.length - 3;
  // `Date.UTC` reads years below 100 as 1900 and later.
  if (end < 19 || end > 26 || text[0] === '0' || text[4] !== '-' || !text.endsWith('+00')) return readRareTimestamp(text);
  const digit = (at: number) => text.charCodeAt(at) - 48;
  const twoDigits = (at: number) => digit(at) * 10 + digit(at + 1);
  let ms = 0;
  for (let at = 20, unit = 100; at < end && unit >= 1; at += 1, unit /= 10) ms += digit(at) * unit;
  return new Date(
    Date.UTC(twoDigits(0) * 100 + twoDigits(2), twoDigits(5) - 1, twoDigits(8), twoDigits(11), twoDigits(14), twoDigits(17), ms),
  );
}

function readRareTimestamp(text: string): Date {
  if (text === '-infinity' || text.endsWith(' BC')) return new Date(FIRST_TIMESTAMP);
  if (text === 'infinity' || /^\d{5}/.test(text)) return new Date(LAST_TIMESTAMP);
  return new Date(`${text.replace(' ', 'T')}:00`);
}
