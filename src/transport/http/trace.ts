import type { IncomingMessage } from 'node:http';

/** The caller's span in a distributed trace, as fields of the log; empty without a valid `traceparent`. */
export function readTrace(request: IncomingMessage): { trace_id?: string; parent_id?: string } {
  const { traceparent } = request.headers;
  if (typeof traceparent !== 'string') return {};
  // Version ff is forbidden; versions other than 00 may have more fields after the flags (W3C Trace Context, 3.2).
  const [, version, traceId, parentId, suffix] = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent) ?? [];
  if (!version || version === 'ff' || (version === '00' && suffix) || /^0+$/.test(traceId ?? '') || /^0+$/.test(parentId ?? '')) return {};
  return { trace_id: traceId, parent_id: parentId };
}
