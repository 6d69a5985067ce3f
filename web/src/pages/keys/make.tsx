import { useMutation } from '@apollo/client/react';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { graphql } from '../../graphql/graphql.ts';
import { randomKey } from '../../graphql/key.ts';
import { type Failure, isUncertain, toFailure } from '../../graphql/link.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { formatExact, formatNumber } from '../../parts/format.ts';
import { useMounted } from '../../parts/mounted.ts';
import { Problem } from '../../parts/states.tsx';
import { useToast } from '../../parts/toast.tsx';
import { useEnded } from '../../session/ended.ts';
import { openUnsent } from '../../session/unsent.ts';

const CreateApiKey = graphql(`
  mutation CreateApiKey($input: CreateApiKeyInput!) {
    createApiKey(input: $input) {
      key
      apiKey {
        id
        name
      }
    }
  }
`);

interface Made {
  readonly name: string;
  readonly key: string;
}

interface Content {
  readonly name: string;
  readonly day: string;
}

const nothing: Content = { name: '', day: '' };

/** The input that this tab's viewers have typed, by viewer: it survives signing in again. */
const unsent = openUnsent<Content>('key');

/** The keys, by viewer, that were made after their page had been left: they are shown when it is opened again. */
const unseen = new Map<string, Made>();

/** Creates a key, and shows it once. */
export function MakeKey({ viewerId, onMade }: { viewerId: string; onMade(): void }) {
  // The response bypasses the cache: the key is only in this component's state, until it is dismissed, or waits to be seen.
  const [create, { loading }] = useMutation(CreateApiKey, { fetchPolicy: 'no-cache' });
  const [made, setMade] = useState<Made | null>(() => unseen.get(viewerId) ?? null);
  useEffect(() => void unseen.delete(viewerId), [viewerId]);
  const toast = useToast();
  const isMounted = useMounted();
  const [failure, setFailure] = useState<Failure | null>(null);
  const [content, setContent] = useState(() => unsent.get(viewerId) ?? nothing);
  const { name, day } = content;
  useEnded(failure?.code);
  /** Sent again as long as it is unknown whether the key was made, so that there is one key. */
  const idempotencyKey = useRef(randomKey());
  const change = (changes: Partial<Content>) => {
    idempotencyKey.current = randomKey();
    const next = { ...content, ...changes };
    unsent.set(viewerId, next);
    setContent(next);
  };
  const make = async (event: FormEvent) => {
    event.preventDefault();
    if (loading) return;
    setFailure(null);
    try {
      const input = { name: name.trim(), idempotencyKey: idempotencyKey.current, ...(day && { expires: endOf(day) }) };
      const { data } = await create({ variables: { input } });
      if (!data?.createApiKey) return;
      idempotencyKey.current = randomKey();
      const next = { name: data.createApiKey.apiKey.name, key: data.createApiKey.key };
      // Whoever has left the page may be writing another one already.
      if (isMounted() || unsent.get(viewerId) === content) unsent.delete(viewerId);
      if (!isMounted()) {
        unseen.set(viewerId, next);
        toast(`The key ${next.name} is made, and waits on the page of the keys.`);
        return onMade();
      }
      setMade(next);
      setContent(nothing);
      onMade();
    } catch (error) {
      const refused = toFailure(error);
      if (isUncertain(refused)) onMade();
      else idempotencyKey.current = randomKey();
      setFailure(refused);
    }
  };
  if (made) return <Shown made={made} onDone={() => setMade(null)} />;
  const { name: nameErrors = [], expires: expiresErrors = [] } = failure?.fields ?? {};
  return (
    <form className="make-key" aria-labelledby="make-key" noValidate onSubmit={make}>
      <h2 id="make-key">Make a key</h2>
      <div className="field">
        <label htmlFor="key-name">Name</label>
        <input
          className="input"
          id="key-name"
          autoComplete="off"
          placeholder="nightly job"
          value={name}
          onChange={({ target }) => change({ name: target.value })}
          aria-invalid={nameErrors.length > 0}
          aria-describedby="key-name-error"
        />
        <FieldErrors id="key-name-error" messages={nameErrors} />
      </div>
      <div className="field">
        <label htmlFor="key-end">Last day (optional)</label>
        <input
          className="input"
          id="key-end"
          type="date"
          min={today()}
          value={day}
          onChange={({ target }) => change({ day: target.value })}
          aria-invalid={expiresErrors.length > 0}
          aria-describedby="key-end-hint key-end-error"
        />
        <small id="key-end-hint">
          {day ? `Good until ${formatExact(endOf(day))}.` : `In your zone, ${zone}. Without one it is good until it is revoked.`}
        </small>
        <FieldErrors id="key-end-error" messages={expiresErrors} />
      </div>
      <button type="submit" className="button primary" aria-disabled={loading}>
        Make the key
      </button>
      {failure && <Refusal failure={failure} />}
    </form>
  );
}

const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
const pad = (value: number) => String(value).padStart(2, '0');
function today(): string {
  const now = new Date();
  return `${now.getFullYear()}-${pad(now.getMonth() + 1)}-${pad(now.getDate())}`;
}

/** The last moment that a date can be. */
const LAST_MOMENT = 8.64e15;

/** The end of a day in the reader's zone. */
function endOf(day: string): string {
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  const moment = new Date(year, month - 1, date + 1).getTime();
  return new Date(Number.isNaN(moment) ? LAST_MOMENT : moment).toISOString();
}

function FieldErrors({ id, messages }: { id: string; messages: readonly string[] }) {
  return (
    <span id={id} className="field-error" aria-live="polite">
      {messages.join(' ')}
    </span>
  );
}

/** An error that is not shown beside a field. */
function Refusal({ failure }: { failure: Failure }) {
  if (Object.keys(failure.fields).some((name) => name === 'name' || name === 'expires')) return null;
  const { quota, limit } = failure.context;
  if (quota !== 'keys_per_user') return <Problem failure={failure} />;
  return (
    <div className="state problem" role="alert" data-code="conflict">
      <h2>You have as many keys as you may have</h2>
      <p>{formatNumber(Number(limit))} may be good at a time. Revoke one that nothing uses any more, then make this one.</p>
    </div>
  );
}

/** The new key, which can be seen only this once. */
function Shown({ made: { name, key }, onDone }: { made: Made; onDone(): void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section className="shown-key" aria-labelledby="shown-key">
      <h2 id="shown-key" ref={heading} tabIndex={-1}>
        The key <bdi>{name}</bdi> is made
      </h2>
      <p>Copy it now. It will not be shown again: what is kept is a hash.</p>
      <div className="key-text">
        <code>{key}</code>
        <CopyButton text={key} label="Copy the key" className="button primary" />
      </div>
      <button type="button" className="button" onClick={onDone}>
        I have it
      </button>
    </section>
  );
}
