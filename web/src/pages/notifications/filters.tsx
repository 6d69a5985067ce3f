import { type FormEvent, useEffect, useId, useRef } from 'react';
import { useAddress } from '../../parts/address.ts';
import { toneOf } from '../../parts/badge.tsx';
import { useDropUnknown } from '../../parts/filters.tsx';
import { type Filter, type Severity, severities } from './row.ts';

/** The filter in the URL; an unknown severity is ignored. */
export function useFilter(): Filter {
  const address = useAddress();
  const severity = address.get('severity') as Severity | null;
  const kind = address.get('kind');
  return {
    ...(address.get('unread') === 'true' && { unread: true }),
    ...(severity && severities.includes(severity) && { severity }),
    ...(kind && { kind }),
  };
}

export const isFiltered = (filter: Filter) => Object.keys(filter).length > 0;

/** The changes to the URL that clear all filters. */
export const noFilter = { unread: null, severity: null, kind: null } as const;

/** The filters as chips; `kinds` are the suggestions. */
export function Filters({ filter, kinds }: { filter: Filter; kinds: readonly string[] }) {
  const { set } = useAddress();
  const chips = useRef<HTMLElement>(null);
  const focus = (selector: string) => chips.current?.querySelector<HTMLElement>(selector)?.focus();
  const isKindNext = useRef(false);
  const setKind = (next: string | null) => {
    isKindNext.current = true;
    set({ kind: next });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the control of another kind replaces the one that had the focus.
  useEffect(() => {
    if (isKindNext.current) focus('.chosen-kind, .kind-field');
    isKindNext.current = false;
  }, [filter.kind]);
  const showAll = () => {
    // This button goes, and the focus would be lost with it.
    focus('.chip');
    set(noFilter);
  };
  useDropUnknown('severity', (value) => severities.some((severity) => severity === value));
  useDropUnknown('unread', (value) => value === 'true');
  return (
    <search ref={chips} className="chips" aria-label="Filters">
      <button
        type="button"
        className="chip"
        aria-pressed={filter.unread === true}
        onClick={() => set({ unread: filter.unread ? null : 'true' })}
      >
        Unread
      </button>
      {severities.map((severity) => (
        <button
          key={severity}
          type="button"
          className="chip"
          aria-pressed={filter.severity === severity}
          onClick={() => set({ severity: filter.severity === severity ? null : severity })}
        >
          <i className="dot" data-tone={toneOf(severity)} aria-hidden="true" /> {severity}
        </button>
      ))}
      {filter.kind ? (
        <button type="button" className="chip chosen-kind" aria-pressed="true" onClick={() => setKind(null)}>
          <bdi>{filter.kind}</bdi> <span aria-hidden="true">×</span>
        </button>
      ) : (
        <KindField kinds={kinds} onChoose={setKind} />
      )}
      {isFiltered(filter) && (
        <button type="button" className="chip" onClick={showAll}>
          Show all
        </button>
      )}
    </search>
  );
}

/** Kinds are an open set: one is typed, or chosen from those seen so far. */
function KindField({ kinds, onChoose }: { kinds: readonly string[]; onChoose(kind: string): void }) {
  const list = useId();
  const choose = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const kind = String(new FormData(event.currentTarget).get('kind') ?? '').trim();
    if (kind) onChoose(kind);
  };
  return (
    <form onSubmit={choose}>
      <input
        name="kind"
        className="chip kind-field"
        list={list}
        maxLength={255}
        placeholder="Kind"
        aria-label="Kind"
        autoComplete="off"
        // A chosen suggestion applies at once; typed text applies on Enter.
        onInput={({ currentTarget, nativeEvent }) => {
          const isChosen = !(nativeEvent instanceof InputEvent) || nativeEvent.inputType === 'insertReplacementText';
          if (isChosen && kinds.includes(currentTarget.value)) onChoose(currentTarget.value);
        }}
      />
      <datalist id={list}>
        {kinds.map((kind) => (
          <option key={kind} value={kind} />
        ))}
      </datalist>
    </form>
  );
}
