import { useApolloClient } from '@apollo/client/react';
import RFB from '@novnc/novnc';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { graphql } from '../../graphql/graphql.ts';
import { toFailure } from '../../graphql/link.ts';
import { toInstance } from './address.ts';
import type { TabProps } from './query.ts';
import { describeClosing } from './reasons.ts';

const TicketMutation = graphql(`
  mutation ConsoleTicket($input: CreateWebsocketTicketInput!) {
    createWebsocketTicket(input: $input) {
      path
      ticket
    }
  }
`);

type State = { readonly name: 'connecting' | 'live' } | { readonly name: 'ended'; readonly why: string };

interface ScreenProps extends TabProps {
  /** The console session that useOpening created: the screen is shown in it. */
  readonly sessionId: string | null;
  onAgain(): void;
}

/** The screen of an instance, over RFB. */
export default function Screen({ project, instance, sessionId, onAgain }: ScreenProps) {
  const element = useRef<HTMLDivElement>(null);
  const { state, name, rfb, leave, needsPassword, sendPassword } = useScreen(element, project, instance.id, sessionId);
  const button = useRef<HTMLButtonElement>(null);
  const hasEnded = state.name === 'ended';
  useEffect(() => {
    const parent = element.current;
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || !event.shiftKey) return;
      event.stopPropagation();
      button.current?.focus();
    };
    parent?.addEventListener('keydown', onKey, { capture: true });
    return () => parent?.removeEventListener('keydown', onKey, { capture: true });
  }, []);
  return (
    <section className="console" aria-label="Screen">
      <div className="actions">
        <span className="connection" data-state={hasEnded ? 'offline' : state.name} role="status">
          <i aria-hidden="true" />
          {state.name}
        </span>
        {name && <bdi>{name}</bdi>}
        <button ref={button} type="button" className="button small" onClick={() => (hasEnded ? onAgain() : leave())}>
          {hasEnded ? 'Connect again' : 'Disconnect'}
        </button>
        {state.name === 'live' && (
          <button type="button" className="button small" onClick={() => rfb?.sendCtrlAltDel()}>
            Send Ctrl + Alt + Del
          </button>
        )}
        <Link className="end" href={toInstance(project.id, instance.id, 'sessions')}>
          Who was here
        </Link>
      </div>
      {hasEnded && (
        <p role="alert" className="console-note">
          {state.why}
        </p>
      )}
      {needsPassword && <Password onSend={sendPassword} />}
      <div ref={element} className="screen" />
      <p className="none">
        <kbd>Shift</kbd> + <kbd>Esc</kbd> leaves the screen for the rest of the page.
      </p>
    </section>
  );
}

function Password({ onSend }: { onSend(password: string): void }) {
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSend(String(new FormData(event.currentTarget).get('password') ?? ''));
  };
  return (
    <form className="actions" onSubmit={send}>
      <label>
        The screen asks for its password
        <input className="input" name="password" type="password" autoComplete="off" required />
      </label>
      <button type="submit" className="button">
        Send
      </button>
    </form>
  );
}

function useScreen(
  element: React.RefObject<HTMLDivElement | null>,
  project: TabProps['project'],
  instanceId: string,
  sessionId: string | null,
) {
  const apollo = useApolloClient();
  const [state, setState] = useState<State>({ name: 'connecting' });
  const [name, setName] = useState('');
  const [rfb, setRfb] = useState<RFB | null>(null);
  const [needsPassword, setNeedsPassword] = useState(false);
  const hasLeft = useRef(false);
  const { id: projectId, organizationId } = project;
  useEffect(() => {
    const controller = new AbortController();
    const end = (why: string) => !controller.signal.aborted && setState({ name: 'ended', why });
    const show = (socket: WebSocket) => {
      const parent = element.current;
      if (controller.signal.aborted || !parent) return socket.close();
      const opened = new RFB(parent, socket);
      opened.scaleViewport = true;
      let refusal = '';
      opened.addEventListener('connect', () => {
        setState({ name: 'live' });
        opened.focus();
      });
      opened.addEventListener('desktopname', ({ detail }) => setName(detail.name));
      opened.addEventListener('credentialsrequired', () => setNeedsPassword(true));
      opened.addEventListener('securityfailure', ({ detail }) => {
        refusal = detail.reason ?? '';
      });
      // The server's reason is in the socket's close event, which noVNC does not pass on.
      socket.addEventListener('close', ({ code, reason }) => {
        const message = refusal || `The connection was closed with ${code} (${reason || 'no reason'}).`;
        end(describeClosing(hasLeft.current ? 'left' : reason, message));
      });
      controller.signal.addEventListener('abort', () => opened.disconnect());
      setRfb(opened);
    };
    const input = { organizationId, projectId, target: 'console' as const, instanceId, sessionId };
    apollo.mutate({ mutation: TicketMutation, variables: { input } }).then(
      ({ data }) => {
        const { path, ticket } = data?.createWebsocketTicket ?? {};
        if (controller.signal.aborted || !path || !ticket) return;
        const address = new URL(path, location.origin);
        address.protocol = address.protocol.replace('http', 'ws');
        address.searchParams.set('ticket', ticket);
        show(new WebSocket(address, ['binary']));
      },
      (error: unknown) => {
        const { code, message } = toFailure(error);
        end(describeClosing(code, message));
      },
    );
    return () => controller.abort();
  }, [apollo, element, projectId, organizationId, instanceId, sessionId]);
  const leave = () => {
    hasLeft.current = true;
    rfb?.disconnect();
  };
  const sendPassword = (password: string) => {
    setNeedsPassword(false);
    rfb?.sendCredentials({ password });
  };
  return { state, name, rfb, leave, needsPassword, sendPassword };
}
