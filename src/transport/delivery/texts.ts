/** The bytes of all rendered texts together. */
const MAX_RENDERED_BYTES = 8 * 1024 * 1024;
/** The memory that each text takes besides its bytes. */
const TEXT_BYTES = 256;

interface Rendered {
  readonly texts: WeakMap<object, Buffer>;
  /** Weak: a text lives no longer than its event, which lives as long as it is in a window. */
  readonly event: WeakRef<object>;
  readonly bytes: number;
}

/** The rendered texts of shared events, of all renderers: the oldest is evicted first, and rendered again on demand. */
const rendered = new Set<Rendered>();
let total = 0;

/** Caches a text for the other subscribers that get the same event from the same renderer. */
export function cacheText(texts: WeakMap<object, Buffer>, event: object, text: Buffer, maxBytes = MAX_RENDERED_BYTES): void {
  const added = { texts, event: new WeakRef(event), bytes: text.length + TEXT_BYTES };
  texts.set(event, text);
  rendered.add(added);
  total += added.bytes;
  for (const oldest of rendered) {
    if (total <= maxBytes || oldest === added) return;
    rendered.delete(oldest);
    total -= oldest.bytes;
    const oldestEvent = oldest.event.deref();
    if (oldestEvent) oldest.texts.delete(oldestEvent);
  }
}
