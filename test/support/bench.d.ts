/** The bench's own scripts, which are plain JavaScript: its packages are not the product's. */
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
