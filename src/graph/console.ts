import type { ConsoleEnd, ConsoleKind } from '../generated/prisma/enums.ts';

// The contract between the consoles and a transport: the transport has the sockets of the clients, the consoles have the sessions.

/** Why a console cannot be opened. */
export type ConsoleRejection =
  | 'instance_not_running'
  | 'console_unreachable'
  | 'session_gone'
  | 'after_not_kept'
  | 'too_many_consoles'
  /** Another client was attached at the same moment: the session continues. */
  | 'restart';

/** A session that a client is about to be attached to; the client is sent its id and the position before. */
export interface ConsoleOpening {
  readonly sessionId: string;
  /** The position of the first byte that will be sent. */
  readonly position: number;
  attach(client: ConsoleClient): Promise<Attachment | ConsoleRejection>;
  /** To be called where no client will be attached; after an attempt to attach one it does nothing. */
  cancel(): void;
}

/** The attachment of a client to a session, which takes the client's input. */
export interface Attachment {
  readonly kind: ConsoleKind;
  receive(bytes: Buffer): void;
  detach(): void;
}

/** The socket of a client that is attached to a session. */
export interface ConsoleClient {
  /** The number of bytes that are queued but not sent yet. */
  readonly bufferedAmount: number;
  send(bytes: Buffer, onSent: () => void): void;
  /** Stops and resumes the reading of input. */
  pause(): void;
  resume(): void;
  close(closing: Closing): void;
}

/** Why a client's socket is closed: its session has ended, or continues without the client. */
export type Closing = ConsoleEnd | 'credential_expired' | 'restart';
