import { useEffect, useMemo, useRef, useState } from 'react';
import { Loading } from '../../parts/states.tsx';
import type { JsonView } from './codemirror.ts';
import { problemOf } from './content.ts';

interface JsonEditorProps {
  readonly id: string;
  /** The id of the element that names the editor. */
  readonly labelledBy: string;
  readonly text: string;
  readonly isReadOnly?: boolean;
  /** The server's validation errors. */
  readonly errors?: readonly string[];
  onChange?(text: string): void;
}

/** A JSON editor, loaded on demand, with error messages below it. */
export function JsonEditor({ id, labelledBy, text, isReadOnly = false, errors = [], onChange }: JsonEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<JsonView | null>(null);
  const [state, setState] = useState<'loading' | 'open' | 'plain'>('loading');
  const [found, setFound] = useState<string | null>(null);
  const problem = problemOf(text);
  const isWrong = problem !== null || errors.length > 0;
  const attributes = useMemo(
    () => ({
      id,
      'aria-labelledby': labelledBy,
      'aria-describedby': `${id}-hint ${id}-problem`,
      'aria-multiline': 'true',
      ...(isReadOnly && { 'aria-readonly': 'true', tabindex: '0' }),
      ...(isWrong && { 'aria-invalid': 'true' }),
    }),
    [id, labelledBy, isReadOnly, isWrong],
  );
  const latest = useRef({ text, attributes, onChange });
  latest.current = { text, attributes, onChange };

  useEffect(() => {
    let isGone = false;
    const open = ({ openJsonView }: typeof import('./codemirror.ts')) => {
      if (isGone || !place.current) return;
      view.current = openJsonView({
        ...latest.current,
        parent: place.current,
        isReadOnly,
        onChange: (next) => latest.current.onChange?.(next),
        onProblem: setFound,
      });
      setState('open');
    };
    // If the editor cannot be loaded, a plain textarea replaces it.
    import('./codemirror.ts').then(open, () => setState('plain'));
    return () => {
      isGone = true;
      view.current?.close();
      view.current = null;
      setState('loading');
    };
  }, [isReadOnly]);
  useEffect(() => view.current?.setText(text), [text]);
  useEffect(() => view.current?.setAttributes(attributes), [attributes]);

  return (
    <>
      {state === 'loading' && <Loading lines={8} />}
      <div ref={place} className="json-editor" data-wrong={isWrong || undefined} />
      {state === 'plain' && (
        <textarea
          id={id}
          className="input json-plain"
          rows={16}
          value={text}
          readOnly={isReadOnly}
          aria-labelledby={labelledBy}
          aria-describedby={`${id}-problem`}
          aria-invalid={isWrong}
          onChange={(event) => onChange?.(event.target.value)}
        />
      )}
      {!isReadOnly && state === 'open' && (
        <p id={`${id}-hint`} className="hint">
          Tab moves a line in, Shift+Tab out. Escape, then Tab, leaves the editor.
        </p>
      )}
      <p id={`${id}-problem`} className="field-error" role="status">
        {problem && `This is not JSON yet. ${found ?? problem}`}
        {errors.join(' ')}
      </p>
    </>
  );
}
