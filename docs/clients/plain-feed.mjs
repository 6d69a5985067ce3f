/** Follows a project's feed without GraphQL: the same promises, one JSON object a frame. Returns the function that ends it. */
export function followFeed({ baseUrl, getToken, organizationId, projectId, after = null, onEvent, WebSocket = globalThis.WebSocket }) {
  const project = `${baseUrl}/v1/organizations/${organizationId}/projects/${projectId}`;
  let [cursor, waitMs, isEnded, socket] = [after, 0, false, null];
  const connect = async () => {
    if (isEnded) return;
    try {
      const response = await fetch(`${project}/websocket-tickets`, {
        method: 'POST',
        headers: { authorization: `Bearer ${await getToken()}`, 'content-type': 'application/json' },
        body: JSON.stringify({ target: 'notifications' }),
      });
      const { path, ticket } = await response.json();
      const behind = cursor === null ? '' : `&after=${cursor}`;
      socket = new WebSocket(`${baseUrl.replace(/^http/, 'ws')}${path}?ticket=${ticket}${behind}`);
      socket.onmessage = ({ data }) => {
        waitMs = 0;
        const event = JSON.parse(data);
        cursor = event.sequence ?? event.to ?? cursor;
        onEvent(event);
      };
      socket.onclose = again;
      socket.onerror = () => {};
    } catch {
      again();
    }
  };
  const again = () => {
    waitMs = Math.min(waitMs * 2 + 100, 10_000);
    setTimeout(connect, waitMs * (0.5 + Math.random() / 2));
  };
  connect();
  return () => {
    isEnded = true;
    socket?.close();
  };
}
