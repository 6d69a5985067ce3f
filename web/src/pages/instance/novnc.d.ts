// The used parts of noVNC, which has no types of its own.
declare module '@novnc/novnc' {
  interface Events {
    connect: CustomEvent<Record<string, never>>;
    desktopname: CustomEvent<{ readonly name: string }>;
    credentialsrequired: CustomEvent<{ readonly types: readonly string[] }>;
    securityfailure: CustomEvent<{ readonly status: number; readonly reason?: string }>;
  }
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, channel: string | WebSocket);
    scaleViewport: boolean;
    focus(): void;
    disconnect(): void;
    sendCtrlAltDel(): void;
    sendCredentials(credentials: { readonly password: string }): void;
    addEventListener<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): void;
  }
}
