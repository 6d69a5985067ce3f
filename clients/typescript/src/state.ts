import type { PorticoError } from './error.ts';

/** The state of the connection of a feed or a console. */
export type ConnectionState =
  /** Nothing has been read yet, so no connection was opened. */
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

/** A state, and a callback for its changes. */
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
