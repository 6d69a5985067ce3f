import { Fault } from '../kernel/fault.ts';
import { exceedsBytes, findOverflow } from '../kernel/size.ts';

/** The limit that a response exceeds, and the place where it does. */
export interface LimitExceeded {
  readonly maxBytes: number;
  /** The response names that lead to the list or field; empty if no single place exceeds the limit. */
  readonly path: readonly string[];
}

/** The part of a request's context with the limits of its response. */
interface LimitedContext {
  readonly services: { readonly responseLimits: { readonly maxBytes: number } };
  findResponseBudget(): { readonly exceeded: LimitExceeded | null } | null;
}

/** Checks, before a response is serialized, whether it is too large; null if it is not. */
export function findResponseOverflow(result: unknown, context: LimitedContext): LimitExceeded | null {
  const { maxBytes } = context.services.responseLimits;
  const exceeded = context.findResponseBudget()?.exceeded;
  if (exceeded) return exceeded;
  if (!exceedsBytes(result, maxBytes)) return null;
  const [, ...path] = findOverflow(result, maxBytes) ?? [];
  const end = path.findIndex((key) => typeof key === 'number');
  return { maxBytes, path: (end < 0 ? path : path.slice(0, end)).map(String) };
}

/** The `invalid_request` for a response that is too large, with advice on what to request less of. */
export function responseTooLarge({ maxBytes, path }: LimitExceeded, advice = adviseOn(path)): Fault {
  return Fault.invalidRequest(`The response would take more than ${maxBytes} bytes: ${advice}.`);
}

const MAX_PLACE_LENGTH = 200;

function adviseOn(path: readonly string[]): string {
  const names = path.join('.');
  // An alias is chosen by the client and may itself be long.
  const place = names.length > MAX_PLACE_LENGTH ? `${names.slice(0, MAX_PLACE_LENGTH)}…` : names;
  return place === '' ? 'ask for less at once' : `ask for fewer items of \`${place}\`, or for fewer of their fields`;
}
