/** Moves the focus to the page once a dialog has closed whose opener goes too: the focus would be lost with it. */
export function focusPage(): void {
  requestAnimationFrame(() => document.getElementById('main')?.focus({ preventScroll: true }));
}
