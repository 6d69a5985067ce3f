/** The bytes of all rendered texts together. */
const MAX_RENDERED_BYTES = 8 * 1024 * 1024;
/** The memory that each text takes besides its bytes. */
const TEXT_BYTES = 256;

interface Rendered {
  readonly texts: WeakMap<object, Buffer>;
  /** Weak: a text lives no longer than its event, which lives as long as a window has it. */
  readonly event: WeakRef<object>;
  readonly bytes: number;
}

/** The rendered texts of shared events, over all renderers: the oldest is dropped first, and rendered again on demand. */
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
    const gone = oldest.event.deref();
    if (gone) oldest.texts.delete(gone);
  }
}
