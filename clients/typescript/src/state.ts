import type { PorticoError } from './error.ts';

/** What a feed or a console is doing. */
export type ConnectionState =
  /** Nobody has read yet. */
  | { readonly name: 'idle' }
  | { readonly name: 'connecting' }
  | { readonly name: 'live'; readonly over: 'websocket' | 'server-sent events' }
  | { readonly name: 'waiting'; readonly delayMs: number; readonly error: PorticoError }
  | { readonly name: 'ended'; readonly error: PorticoError | null };

/** For people: `idle`, `connecting`, `live`, `waiting 4 s: service_unavailable`, `ended: not_found`. */
export function describeState(state: ConnectionState): string {
  if (state.name === 'waiting') return `waiting ${Math.ceil(state.delayMs / 1000)} s: ${state.error.code}`;
  if (state.name === 'ended') return state.error ? `ended: ${state.error.code}` : 'ended';
  return state.name;
}

/** A state, and who is told when it changes. */
export class StateHolder {
  current: ConnectionState = { name: 'idle' };
  readonly #onState: ((state: ConnectionState) => void) | undefined;

  constructor(onState?: (state: ConnectionState) => void) {
    this.#onState = onState;
  }

  enter(state: ConnectionState): void {
    if (state.name === this.current.name && state.name !== 'waiting') return;
    this.current = state;
    this.#onState?.(state);
  }
}
