/** The style of the line at the top of a page that shows who is signed in, readable on light and dark pages. */
export const signedInStyle = `
  .signed-in { padding: 4px 16px; background: #e4effa; color: #1a212b; font: 14px/1.45 system-ui, sans-serif }
  .signed-in p { margin: 0 }`;

/**
 * A script that gives a page the desk's session (`web/src/session`). A link of the desk passes a copy to the tab that it opens. While
 * the desk is open, its own session is used, which is renewed; a sign-out there is broadcast, and deletes the copy at once.
 */
export const deskSession = `const desk = {
  session() {
    const name = 'portico:session';
    try {
      if (window.opener && !window.opener.closed) {
        const current = window.opener.sessionStorage.getItem(name);
        if (current) sessionStorage.setItem(name, current);
        else sessionStorage.removeItem(name);
      }
    } catch {
      // The tab that opened this one shows another site by now.
    }
    try {
      return JSON.parse(sessionStorage.getItem(name));
    } catch {
      return null;
    }
  },
  async showUser() {
    const session = desk.session();
    if (!session) return;
    const line = document.createElement('p');
    line.setAttribute('role', 'status');
    const header = document.createElement('header');
    header.className = 'signed-in';
    header.append(line);
    document.body.prepend(header);
    const answer = await fetch('graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer ' + session.credential },
      body: JSON.stringify({ query: '{ viewer { email } }' }),
    }).then((response) => response.json(), () => null);
    const email = answer?.data?.viewer?.email;
    if (desk.session()) line.textContent = email
      ? 'Signed in by the desk as ' + email + '. A credential of your own goes before it.'
      : 'The session of the desk is not taken: sign in there again, or use a credential of your own.';
  },
};
new BroadcastChannel('portico:session').addEventListener('message', () => {
  if (desk.session()) return;
  const line = document.querySelector('.signed-in p');
  if (line) line.textContent = 'The session of the desk has ended: sign in there again, or use a credential of your own.';
  dispatchEvent(new Event('portico:signed-out'));
});
`;
