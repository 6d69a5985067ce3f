import { type FormEvent, useEffect, useRef } from 'react';
import type { Failure } from '../../graphql/link.ts';
import { type Content, changedFields, type Draft, fields, problemOf, titles } from './content.ts';
import { JsonEditor } from './editor.tsx';
import { FieldErrors, Refusal } from './refusal.tsx';

interface EditingProps {
  readonly draft: Draft;
  readonly isDirty: boolean;
  readonly isSaving: boolean;
  readonly failure: Failure | null;
  onChange(changes: Partial<Content>): void;
  onSave(): void;
  onDiscard(): void;
}

/** The form of a dashboard. Ctrl+S or Cmd+S saves. */
export function Editing({ draft, isDirty, isSaving, failure, onChange, onSave, onDiscard }: EditingProps) {
  const { mine, base } = draft;
  const errors = failure?.fields ?? {};
  const isJson = problemOf(mine.widgets) === null;
  const canSave = isDirty && isJson && !isSaving;
  const canDiscard = isDirty && !isSaving;
  const form = useRef<HTMLFormElement>(null);
  useSaveKey(() => form.current?.requestSubmit());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canSave) onSave();
  };
  const attributes = (name: string) => ({ 'aria-invalid': Boolean(errors[name]), 'aria-describedby': `${name}-error` });
  const words = changedFields(base, mine).map((field) => titles[field].toLowerCase());
  return (
    <form className="board-form" ref={form} onSubmit={submit}>
      <div className="field">
        <label htmlFor="name">Name</label>
        <input id="name" className="input" value={mine.name} {...attributes('name')} onChange={(e) => onChange({ name: e.target.value })} />
        <FieldErrors id="name-error" messages={errors.name} />
      </div>
      <div className="field">
        <label htmlFor="description">Description</label>
        <textarea
          id="description"
          className="input"
          rows={2}
          value={mine.description}
          {...attributes('description')}
          onChange={(event) => onChange({ description: event.target.value })}
        />
        <FieldErrors id="description-error" messages={errors.description} />
      </div>
      <Flags content={mine} onChange={onChange} />
      <div className="field">
        <h2 id="widgets-title">Widgets</h2>
        <JsonEditor
          id="widgets"
          labelledBy="widgets-title"
          text={mine.widgets}
          errors={errors.widgets}
          onChange={(widgets) => onChange({ widgets })}
        />
      </div>
      <div className="actions save-bar">
        <Refusal failure={failure} shown={fields} />
        <button type="submit" className="button primary" aria-disabled={!canSave}>
          {isSaving ? 'Saving …' : 'Save'}
        </button>
        <button type="button" className="button" aria-disabled={!canDiscard} onClick={() => canDiscard && onDiscard()}>
          Discard changes
        </button>
        <span role="status">
          {isDirty ? `Not saved: ${words.join(', ')}.` : 'Nothing has been changed.'}
          {!isJson && ' The widgets must be JSON before they can be saved.'}
        </span>
      </div>
    </form>
  );
}

interface FlagsProps {
  readonly content: Pick<Content, 'isDefault' | 'isPublic'>;
  onChange(changes: Partial<Content>): void;
}

export function Flags({ content, onChange }: FlagsProps) {
  return (
    <fieldset className="flags">
      <legend className="hidden">Where it is shown, and to whom</legend>
      <label>
        <input type="checkbox" checked={content.isDefault} onChange={(event) => onChange({ isDefault: event.target.checked })} />
        <span>
          Default of the project <small>It takes the place of the one that there is.</small>
        </span>
      </label>
      <label>
        <input type="checkbox" checked={content.isPublic} onChange={(event) => onChange({ isPublic: event.target.checked })} />
        <span>
          Public <small>Everyone in the project sees it; otherwise its maker and the admins.</small>
        </span>
      </label>
    </fieldset>
  );
}

function useSaveKey(save: () => void) {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 's' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      latest.current();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}
