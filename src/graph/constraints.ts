import { type GraphQLArgument, type GraphQLInputField, isNonNullType } from 'graphql';
import { lengthProblem } from '../kernel/text.ts';

/** The constraints that an input field or argument declares in its `extensions`, beyond its type. */
export interface FieldConstraints {
  readonly maxItems?: number;
  /** In code points, for a text whose scalar allows more. */
  readonly maxLength?: number;
  readonly minimum?: number;
  /** For the cursor of a list; whether it is one of this list is known when the list is read. */
  readonly isCursor?: boolean;
  /** For a field that may be absent, but not null. */
  readonly rejectsNull?: boolean;
  /** The value of another field that makes this one required, and the message for a request without it. */
  readonly requiredFor?: { readonly field: string; readonly value: string; readonly message: string };
}

/** An element of the schema that takes a value, as `__InputValue` of an introspection. */
export type InputValue = GraphQLInputField | GraphQLArgument;

/** The message for a cursor that is malformed, or of another list. */
export const NOT_A_CURSOR = 'Not a valid cursor.';

/**
 * The most characters of a cursor. That of a name of 255 characters of four bytes has some 1,400; and a document may have thousands
 * of lists that each decode the same variable.
 */
const MAX_CURSOR_LENGTH = 2_000;

/** The first violation among the constraints of what takes a value; null if there is none. */
export function findConstraintError(inputValues: readonly InputValue[], value: unknown): string | null {
  for (const inputValue of inputValues) {
    const problem = constraintError(inputValue, value);
    if (problem) return problem;
  }
  return null;
}

function constraintError({ type, extensions }: InputValue, value: unknown): string | null {
  const { maxItems, maxLength, minimum, isCursor, rejectsNull } = extensions as FieldConstraints;
  // A nullable variable may stand where null is not allowed, if there is a default.
  if ((rejectsNull || isNonNullType(type)) && value === null) return 'This field may not be null.';
  if (minimum !== undefined && typeof value === 'number' && value < minimum)
    return `Ensure this value is greater than or equal to ${minimum}.`;
  if (isCursor && typeof value === 'string' && !isCursorText(value)) return NOT_A_CURSOR;
  if (maxLength !== undefined && typeof value === 'string') return lengthProblem(value, maxLength);
  if (maxItems !== undefined && Array.isArray(value) && value.length > maxItems)
    return `Ensure this field has no more than ${maxItems} items.`;
  return null;
}

/** Whether a text may be a cursor: it is what its bytes are written as, without padding. */
function isCursorText(text: string): boolean {
  return text !== '' && text.length <= MAX_CURSOR_LENGTH && Buffer.from(text, 'base64url').toString('base64url') === text;
}
