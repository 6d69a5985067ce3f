import { parseUuid } from '../kernel/uuid.ts';
import { OperatorError } from './operatorerror.ts';

/** The id that an operator has given, in lower case. Throws an OperatorError for a text that is not a UUID. */
export function readId(text: string): string {
  const id = parseUuid(text);
  if (!id) throw new OperatorError(`${text || 'An empty text'} is not a UUID.`);
  return id;
}
