/** For the console's user: why it was closed and what to do, by the codes of docs/consoles.md and docs/errors.md. */
const closings: Readonly<Record<string, string>> = {
  access_lost: 'You have lost the access to this project, or the role “member” in it.',
  console_closed: 'The console has hung up: a shell was left, or the machine was switched off.',
  console_moved: 'The console is elsewhere now. Connect again to find it.',
  console_unreachable: 'There is no console behind this instance, or it does not answer. Whoever runs the platform can say why.',
  ended: 'Somebody has ended this session.',
  idle: 'Nothing has passed for too long. Connect again to go on.',
  instance_gone: 'The instance was deleted, or moved to another project.',
  instance_not_running: 'The instance is not running. Its console answers when it is started.',
  left: 'You have left the console.',
  lost: 'The session was lost in a failure of the platform. Connect again to begin another one.',
  not_found: 'The instance is gone, or you may not see it any more.',
  permission_denied: 'A console takes the role “member” in the project. An admin of the project can give it to you.',
  rate_limited: 'Too many requests: the budget of this hour is spent.',
  session_gone: 'The session is over. Connect again to begin another one.',
  session_required: 'An API key cannot open a console in a page: that takes a person who has signed in.',
  taken_over: 'Somebody has opened this console elsewhere. A serial console is one wire: connecting again takes it from them.',
  too_many_consoles: 'You have too many consoles open. Close another one first.',
  too_many_sockets: 'You have too many connections open. Close another tab first.',
};
export const describeClosing = (code: string, message: string) => closings[code] ?? message;
