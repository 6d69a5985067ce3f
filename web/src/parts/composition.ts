import type { KeyboardEvent } from 'react';

/** The code of every key that an input method handles, also of the Enter that Safari sends after the end of a composition. */
const INPUT_METHOD = 229;

/**
 * Keeps a key of an input method, which composes a word, from everything within the field that acts on keys: Enter confirms the word
 * then. Returns whether it is one. For `onKeyDownCapture`, as a combobox acts in this phase itself.
 */
export function withholdComposition(event: KeyboardEvent): boolean {
  const isComposing = event.nativeEvent.isComposing || event.keyCode === INPUT_METHOD;
  if (isComposing) event.stopPropagation();
  return isComposing;
}
