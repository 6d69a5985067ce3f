const canonical = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * The UUID in lower case, or null. Accepts only the canonical spelling, in either case: PostgreSQL accepts braces and missing
 * hyphens too, and then one resource would have many addresses.
 */
export function parseUuid(text: unknown): string | null {
  return typeof text === 'string' && canonical.test(text) ? text.toLowerCase() : null;
}
