import type { Failure } from '../../graphql/link.ts';
import { formatNumber } from '../../parts/format.ts';
import { useEnded } from '../../session/ended.ts';

interface RefusalProps {
  readonly failure: Failure | null;
  /** The fields that show their own errors. */
  readonly shown?: readonly string[];
  /** Sentences by code, for a write that is not about a text. */
  readonly words?: Readonly<Record<string, string>>;
}

/** Why a write was rejected: an exceeded quota with advice, other errors in the server's words. */
export function Refusal({ failure, shown = [], words = {} }: RefusalProps) {
  useEnded(failure?.code);
  if (!failure) return null;
  // Errors already shown beside their fields are only referred to.
  const others = Object.entries(failure.fields).filter(([name]) => !shown.includes(name));
  const isAboutFields = failure.code === 'validation_failed';
  const aboutFields = others.length === 0 ? 'Nothing was saved: see beside the fields.' : 'Some fields are not valid.';
  return (
    <div className="note refusal" role="alert" data-code={failure.code}>
      <p>{isAboutFields ? aboutFields : (wordsFor(failure, words) ?? sentenceOf(failure))}</p>
      {others.map(([name, messages]) => (
        <p key={name}>
          {name}: {messages.join(' ')}
        </p>
      ))}
    </div>
  );
}

/** A conflict is one of versions only if it names the version; an exceeded quota is a conflict too. */
const wordsFor = ({ code, context }: Failure, words: Readonly<Record<string, string>>): string | undefined =>
  code === 'conflict' && typeof context.version !== 'number' ? undefined : words[code];

function sentenceOf({ code, message, context, retryAfterMs }: Failure): string {
  const limit = typeof context.limit === 'number' ? formatNumber(context.limit) : 'a number of';
  if (context.quota === 'dashboards_per_project') {
    return `The project has as many dashboards as it may have: ${limit}. Delete one that nobody needs, or use another project.`;
  }
  if (context.quota === 'idempotency_keys_per_user')
    return `You have written ${limit} times within a day, which is the most. Try tomorrow.`;
  if (code === 'rate_limited' && retryAfterMs !== null) return `${message} Try again in ${Math.ceil(retryAfterMs / 1000)} s.`;
  if (code === 'not_found') return `${message} The dashboard may have been deleted or moved. What you wrote is still here, to be copied.`;
  if (code === 'unreachable') return 'The server does not answer. What you wrote is still here: save again in a moment.';
  if (code === 'credential_unavailable')
    return 'The identity provider does not answer, and nothing was saved. What you wrote is still here: save again in a moment.';
  if (code === 'service_unavailable') return `${message} What you wrote is still here: save again in a moment.`;
  return message;
}

/** The server's errors about one field, beside it. */
export function FieldErrors({ id, messages }: { id: string; messages: readonly string[] | undefined }) {
  return messages ? (
    <p id={id} className="field-error">
      {messages.join(' ')}
    </p>
  ) : null;
}
