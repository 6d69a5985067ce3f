/** The documented clients, which are plain JavaScript to copy. */
declare module '*-feed.mjs' {
  interface FollowOptions {
    readonly baseUrl: string;
    readonly getToken: () => Promise<string | undefined>;
    readonly organizationId: string;
    readonly projectId: string;
    readonly after?: number | null;
    // biome-ignore lint/suspicious/noExplicitAny: an event of whichever type
    readonly onEvent: (event: any) => void;
    readonly onEnd?: (failure: unknown) => void;
    readonly webSocketImpl?: unknown;
    readonly WebSocket?: unknown;
  }
  export function followFeed(options: FollowOptions): () => void;
}

declare module '*/console.mjs' {
  interface ConsoleOptions {
    readonly baseUrl: string;
    readonly getToken: () => Promise<string | undefined>;
    readonly organizationId: string;
    readonly projectId: string;
    readonly instanceId: string;
    readonly onOutput: (bytes: Buffer) => void;
    readonly onEnd?: (how: { readonly code: number; readonly reason: string }) => void;
  }
  export function openConsole(options: ConsoleOptions): { type(bytes: Buffer | string): void; close(): void };
}
