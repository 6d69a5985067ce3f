/** Types of the bench's scripts, which are plain JavaScript because the bench is a package of its own. */
declare module '*/bench/fill.mjs' {
  export function fill(client: import('pg').Client, options: { scale: number }): Promise<void>;
  export function idOf(
    kind: 'organization' | 'user' | 'project' | 'instance' | 'task' | 'dashboard' | 'notification' | 'trial',
    n: number,
  ): string;
}

declare module '*/bench/database.mjs' {
  export function databaseUrl(scale: number): string;
  export function isFilled(scale: number): Promise<boolean>;
}

declare module '*/bench/scale/calibration.mjs' {
  export function readCosts(): { readonly sources: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>>;
}

declare module '*/bench/scale/provider.mjs' {
  interface Assumptions {
    readonly projects: number;
    readonly sockets: number;
    readonly exponent: number;
  }
  export const usual: Assumptions;
  export function openRandom(seed: number): () => number;
  export function drawSizes(assumed: Assumptions, random: () => number): Uint32Array;
  export function processesOf(size: number, replicas: number): number;
}

declare module '*/bench/scale/simulation.mjs' {
  interface Group {
    readonly count: number;
    readonly cost: number;
    readonly begun: number;
    readonly entered: number;
    readonly tries: number;
    readonly isLost: boolean;
  }
  export class Queue {
    readonly work: number;
    push(group: Group): void;
    serve(capacity: number, onServed: (group: Group, count: number) => void): number;
    dropBefore(moment: number, onLate: (group: Group, count: number) => void): void;
  }
}
