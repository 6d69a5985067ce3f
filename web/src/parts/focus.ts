/** Where the focus goes when a dialog closes whose opener goes too: it would be lost with it. */
export function findPage(): HTMLElement | null {
  return document.getElementById('main');
}
