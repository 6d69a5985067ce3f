import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react';
import { useAddress } from './address.ts';
import { toneOf } from './badge.tsx';
import type { Sort } from './column.ts';
import { toWords } from './format.ts';

/** Drops unknown values, which a link from elsewhere may contain. */
export const keepKnown = <Value extends string>(values: readonly string[], known: readonly Value[]): Value[] =>
  known.filter((value) => values.includes(value));

/** Removes the unknown values of a parameter from the URL, which would otherwise say something that the list does not show. */
export function useDropUnknown(name: string, isKnown: (value: string) => boolean): void {
  const { all, set } = useAddress();
  const values = all(name);
  const known = values.filter(isKnown);
  useEffect(() => {
    if (known.length < values.length) set({ [name]: known }, { replace: true });
  });
}

/** The order of a list, in the URL as `sort=name` or `sort=-name`. */
export function useSort<Field extends string>(fields: readonly Field[], initial: Sort<Field>): [Sort<Field>, (sort: Sort) => void] {
  const { get, set } = useAddress();
  const text = get('sort') ?? '';
  const findField = (value: string) => fields.find((one) => one === value.replace(/^-/, ''));
  const field = findField(text);
  useDropUnknown('sort', (value) => findField(value) !== undefined);
  const sort: Sort<Field> = field ? { field, direction: text.startsWith('-') ? 'desc' : 'asc' } : initial;
  return [
    sort,
    ({ field, direction }) => {
      const isInitial = field === initial.field && direction === initial.direction;
      set({ sort: isInitial ? null : `${direction === 'desc' ? '-' : ''}${field}` });
    },
  ];
}

interface ChipsProps<Value extends string> {
  readonly label: string;
  readonly name: string;
  readonly values: readonly Value[];
  /** At most one value can be chosen. */
  readonly isSingle?: boolean;
  readonly hasDots?: boolean;
  /** Labels for values that do not use their own words. */
  readonly titles?: Readonly<Partial<Record<Value, string>>>;
  /** A URL parameter that each change removes, as it cannot be combined with this filter. */
  readonly without?: string;
}

/** The values of one filter as toggle buttons; the pressed ones are in the URL. */
export function Chips<Value extends string>({ label, name, values, isSingle, hasDots, titles, without }: ChipsProps<Value>) {
  const { all, set } = useAddress();
  const pressed = keepKnown(all(name), values);
  useDropUnknown(name, (value) => values.some((one) => one === value));
  const toggle = (value: Value) => {
    const rest = pressed.filter((one) => one !== value);
    const next = rest.length < pressed.length ? rest : isSingle ? [value] : [...rest, value];
    set({ [name]: next, ...(without && { [without]: null }) });
  };
  return (
    <fieldset className="chips">
      <legend className="hidden">{label}</legend>
      <span className="chips-label" aria-hidden="true">
        {label}
      </span>
      {values.map((value) => (
        <button key={value} type="button" className="chip" aria-pressed={pressed.includes(value)} onClick={() => toggle(value)}>
          {hasDots && <i className="dot" data-tone={toneOf(value)} aria-hidden="true" />}
          {titles?.[value] ?? toWords(value)}
        </button>
      ))}
    </fieldset>
  );
}

const TYPING_MS = 250;

/** How often the filters around a field have been cleared. */
const ClearedContext = createContext(0);

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly suggestions?: readonly string[];
  onFocus?(): void;
}

/** A text filter, written to the URL after a debounce. */
export function FilterField({ label, name, suggestions, onFocus }: FieldProps) {
  const { get, set } = useAddress();
  const value = get(name) ?? '';
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const cleared = useContext(ClearedContext);
  // The typed text is dropped when the filters are cleared, even if it has not been written to the URL yet.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each clearing counts.
  useEffect(() => {
    setText(value);
    return () => clearTimeout(timer.current);
  }, [value, cleared]);
  const change = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set({ [name]: next.trim() ? next : null }, { replace: value !== '' }), TYPING_MS);
  };
  return (
    <label className="filter-field">
      <span className="hidden">{label}</span>
      <input
        className="input"
        type="search"
        placeholder={label}
        value={text}
        maxLength={255}
        list={suggestions?.length ? `known-${name}` : undefined}
        autoComplete="off"
        spellCheck={false}
        onChange={({ target }) => change(target.value)}
        onFocus={onFocus}
      />
      {suggestions && suggestions.length > 0 && (
        <datalist id={`known-${name}`}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  );
}

/** The filters of a list, with a button that clears all of them if one is set. */
export function Filters({ names, children }: { names: readonly string[]; children: ReactNode }) {
  const { get, set } = useAddress();
  const [cleared, setCleared] = useState(0);
  const isFiltered = names.some((name) => get(name));
  const clear = () => {
    setCleared((before) => before + 1);
    set(Object.fromEntries(names.map((name) => [name, null])));
  };
  return (
    <search className="filters" aria-label="Filters">
      <ClearedContext value={cleared}>{children}</ClearedContext>
      {isFiltered && (
        <button type="button" className="button small" onClick={clear}>
          Clear filters
        </button>
      )}
    </search>
  );
}
