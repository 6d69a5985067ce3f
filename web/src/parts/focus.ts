/** Where the focus goes when a dialog closes whose opener goes too: it would be lost with it. */
export function findPage(): HTMLElement | null {
  return document.getElementById('main');
}

/** Whether nothing that somebody could use has the focus. A hidden element keeps it until the next frame. */
export function isFocusFree(): boolean {
  const focused = document.activeElement;
  return !focused || focused === document.body || focused === findPage() || focused.getClientRects().length === 0;
}
