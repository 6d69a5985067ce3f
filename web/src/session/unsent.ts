const KEY = 'portico:unsent';

/**
 * The input that this tab's viewers have typed and not sent, by its kind: in memory, and stored only while the person is at the
 * identity provider.
 */
const kinds = new Map(takeStored().map(([kind, entries]) => [kind, new Map(entries)]));

function takeStored(): [string, [string, unknown][]][] {
  const stored = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  return JSON.parse(stored ?? '[]');
}

/** The unsent input of a kind. A key begins with the id of the viewer. */
export function openUnsent<Content>(kind: string): Map<string, Content> {
  const contents = kinds.get(kind) ?? new Map<string, unknown>();
  kinds.set(kind, contents);
  return contents as Map<string, Content>;
}

/** Stores all that is unsent until this tab comes back. */
export function storeUnsent(): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...kinds].map(([kind, contents]) => [kind, [...contents]])));
  } catch {
    // More than the browser stores is not kept: whoever signs in again is not held up by it.
  }
}
