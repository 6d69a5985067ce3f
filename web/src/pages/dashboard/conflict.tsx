import { type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { formatNumber } from '../../parts/format.ts';
import { type Content, type Draft, problemOf, type Saved } from './content.ts';
import { assemble, type Choice, type Choices, isSame, type Part, partsOf, propose } from './merge.ts';
import { Choosing } from './part.tsx';

/** What has been chosen between two versions. */
export interface Comparison {
  readonly base: number;
  readonly theirs: number;
  readonly choices: Choices;
}

interface ConflictProps {
  readonly draft: Draft;
  readonly theirs: Saved;
  /** Where the choices are kept while the draft is looked at instead. */
  readonly kept: RefObject<Comparison | null>;
  readonly isSaving: boolean;
  onSave(base: Saved, mine: Content): void;
  onBack(): void;
}

/** Resolves an edit conflict: both versions side by side, with a choice for each part that differs. */
export function Conflict({ draft, theirs: latest, kept, isSaving, onSave, onBack }: ConflictProps) {
  // Their version is fixed while choosing; a still newer one is detected on saving.
  const [theirs] = useState(latest);
  const { base, mine } = draft;
  const parts = useMemo(() => partsOf(base, mine, theirs), [base, mine, theirs]);
  const [choices, setChoices] = useState<Choices>(() => {
    const before = kept.current?.base === base.version && kept.current.theirs === theirs.version ? kept.current.choices : {};
    return { ...Object.fromEntries(parts.map((part) => [part.key, propose(part)])), ...before };
  });
  useEffect(() => {
    kept.current = { base: base.version, theirs: theirs.version, choices };
  }, [kept, base.version, theirs.version, choices]);
  const differing = parts.filter((part) => !isSame(part));
  const same = parts.filter(isSame);
  const undecided = differing.filter(({ key }) => !choices[key]);
  const invalid = differing.filter((part) => isWrong(part, choices[part.key]));
  const canSave = undecided.length === 0 && invalid.length === 0 && !isSaving;
  const chooseAll = (of: 'mine' | 'theirs') =>
    setChoices((before) => ({ ...before, ...Object.fromEntries(differing.map(({ key }) => [key, { of }])) }));

  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    scrollTo(0, 0);
    heading.current?.focus({ preventScroll: true });
  }, []);

  return (
    <>
      <h1 ref={heading} tabIndex={-1} className="conflict-title">
        Two versions of <bdi>{theirs.name}</bdi>
      </h1>
      <p>
        You began with version {formatNumber(base.version)}. Meanwhile version {formatNumber(theirs.version)} has been saved elsewhere.
        Choose for each part that differs; where one side alone changed a part, that change is chosen already.
      </p>
      <div className="actions">
        <button type="button" className="button" onClick={() => chooseAll('mine')}>
          Mine for all
        </button>
        <button type="button" className="button" onClick={() => chooseAll('theirs')}>
          Theirs for all
        </button>
      </div>
      {differing.map((part) => (
        <Choosing
          key={part.key}
          part={part}
          choice={choices[part.key]}
          onChoose={(choice: Choice) => setChoices((before) => ({ ...before, [part.key]: choice }))}
        />
      ))}
      {same.length > 0 && <p>The same in both: {same.map(({ title }) => title).join('; ')}.</p>}
      <div className="actions save-bar">
        <button
          type="button"
          className="button primary"
          aria-disabled={!canSave}
          onClick={() => canSave && onSave(theirs, assemble(parts, choices))}
        >
          {isSaving ? 'Saving …' : 'Save what is chosen'}
        </button>
        <button type="button" className="button" onClick={onBack}>
          Back to mine
        </button>
        <span role="status">{differing.length === 0 ? 'Both are the same by now.' : sentenceOf(undecided, invalid)}</span>
      </div>
    </>
  );
}

function isWrong({ kind }: Part, choice: Choice | undefined): boolean {
  return kind === 'json' && choice?.of === 'edit' && problemOf(choice.text) !== null;
}

function sentenceOf(undecided: readonly Part[], invalid: readonly Part[]): string {
  if (undecided.length > 0) return `To be chosen yet: ${undecided.map(({ title }) => title).join('; ')}.`;
  if (invalid.length > 0) return `No JSON yet: ${invalid.map(({ title }) => title).join('; ')}.`;
  return 'Everything is chosen.';
}
