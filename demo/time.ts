const HOUR_MS = 3_600_000;

/** The time `hours` before `now`; may be fractional, or negative for a time in the future. */
export function hoursBefore(now: Date, hours: number): Date {
  return new Date(now.getTime() - Math.round(hours * HOUR_MS));
}

export function daysBefore(now: Date, days: number): Date {
  return hoursBefore(now, days * 24);
}
