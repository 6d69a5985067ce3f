import { type ReactNode, useId, useMemo, useRef } from 'react';
import { compareTexts } from './difference.tsx';
import { JsonEditor } from './editor.tsx';
import type { Choice, Part } from './merge.ts';

interface ChoosingProps {
  readonly part: Part;
  readonly choice: Choice | undefined;
  onChoose(choice: Choice): void;
}

const shown = ({ kind }: Part, text: string) => (kind === 'flag' ? (text === 'true' ? 'yes' : 'no') : text);

/** A part that differs: choose my text, theirs, or edit another. */
export function Choosing({ part, choice, onChoose }: ChoosingProps) {
  const id = useId();
  const { mine, theirs, base, kind, title } = part;
  /** The text of the editor, which is there again after another choice. */
  const edited = useRef(mine ?? theirs ?? '');
  const sides = useMemo(
    () => (mine === null || theirs === null ? { mine, theirs } : compareTexts(shown(part, mine), shown(part, theirs))),
    [part, mine, theirs],
  );
  const edit = (text: string) => {
    edited.current = text;
    onChoose({ of: 'edit', text });
  };
  const radio = (of: Choice['of'], words: string) => (
    <label>
      <input
        type="radio"
        name={id}
        checked={choice?.of === of}
        onChange={() => onChoose(of === 'edit' ? { of, text: edited.current } : { of })}
      />
      {words}
    </label>
  );
  return (
    <fieldset className="part" data-open={!choice || undefined}>
      <legend>
        <bdi>{title}</bdi> <span className="part-state">{stateOf(base, mine, theirs)}</span>
      </legend>
      <div className="sides">
        <Version head={radio('mine', mine === null ? 'Mine: without it' : 'Keep mine')}>{sides.mine}</Version>
        <Version head={radio('theirs', theirs === null ? 'Theirs: without it' : 'Take theirs')}>{sides.theirs}</Version>
      </div>
      {kind !== 'flag' && radio('edit', 'Edit')}
      {choice?.of === 'edit' && <EditPart id={id} part={part} text={choice.text} onChange={edit} />}
    </fieldset>
  );
}

function Version({ head, children }: { head: ReactNode; children: ReactNode }) {
  return (
    <div className="side-of-part">
      {head}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling text must be reachable by keyboard too. */}
      {children !== null && <pre tabIndex={0}>{children}</pre>}
    </div>
  );
}

function EditPart({ id, part, text, onChange }: { id: string; part: Part; text: string; onChange(text: string): void }) {
  const label = `Edited: ${part.title}`;
  if (part.kind === 'json') {
    return (
      <>
        <p id={`${id}-label`}>{label}</p>
        <JsonEditor id={`${id}-editor`} labelledBy={`${id}-label`} text={text} onChange={onChange} />
      </>
    );
  }
  const attributes = { className: 'input', 'aria-label': label, value: text };
  return part.kind === 'line' ? (
    <input {...attributes} onChange={(event) => onChange(event.target.value)} />
  ) : (
    <textarea {...attributes} rows={3} onChange={(event) => onChange(event.target.value)} />
  );
}

function stateOf(base: string | null, mine: string | null, theirs: string | null): string {
  const verb = (text: string | null) => (text === null ? 'removed' : base === null ? 'added' : 'changed');
  if (mine === base) return `they ${verb(theirs)} it`;
  if (theirs === base) return `you ${verb(mine)} it`;
  return verb(mine) === verb(theirs) ? `both ${verb(mine)} it` : `you ${verb(mine)} it, they ${verb(theirs)} it`;
}
