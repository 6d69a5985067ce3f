import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { json, jsonParseLinter } from '@codemirror/lang-json';
import { bracketMatching, ensureSyntaxTree, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';

/** A handle on an open JSON editor. */
export interface JsonView {
  setText(text: string): void;
  setAttributes(attributes: Readonly<Record<string, string>>): void;
  close(): void;
}

interface JsonViewOptions {
  readonly parent: HTMLElement;
  readonly text: string;
  readonly isReadOnly: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  onChange(text: string): void;
  /** Called with the line and the message of a syntax error; null if the JSON is valid. */
  onProblem(problem: string | null): void;
}

/** Opens a JSON editor. Tab indents; Escape, then Tab, moves the focus out. */
export function openJsonView(options: JsonViewOptions): JsonView {
  const attributes = new Compartment();
  const view = new EditorView({
    parent: options.parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        json(),
        syntaxHighlighting(colors),
        bracketMatching(),
        lineNumbers(),
        drawSelection(),
        highlightActiveLine(),
        history(),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        mistakes,
        theme,
        EditorView.lineWrapping,
        EditorState.readOnly.of(options.isReadOnly),
        EditorView.editable.of(!options.isReadOnly),
        // A read-only text must scroll with the keyboard too.
        EditorView.contentAttributes.of({ tabindex: '0' }),
        attributes.of(EditorView.contentAttributes.of(options.attributes)),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) options.onChange(state.doc.toString());
        }),
      ],
    }),
  });
  const check = startChecking(view, options.onProblem);
  return {
    setText(text) {
      if (text === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    setAttributes: (next) => view.dispatch({ effects: attributes.reconfigure(EditorView.contentAttributes.of(next)) }),
    close() {
      check.stop();
      view.destroy();
    },
  };
}

const parse = jsonParseLinter();
const CHECK_MS = 300;
const PARSE_MS = 200;

/** The position of the first syntax error. The browser's own error message usually has none. */
function findMistake(state: EditorState): number | null {
  let at: number | null = null;
  ensureSyntaxTree(state, state.doc.length, PARSE_MS)?.iterate({
    enter: ({ type, from }) => {
      if (type.isError) at ??= from;
      return at === null;
    },
  });
  return at;
}

/** Checks the text after a debounce, marks the syntax error and reports it. */
function startChecking(view: EditorView, onProblem: (problem: string | null) => void): { stop(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const check = () => {
    const [found] = view.state.doc.length === 0 ? [] : parse(view);
    const at = found ? (findMistake(view.state) ?? found.from) : 0;
    const line = found && view.state.doc.lineAt(at);
    view.dispatch({ effects: markMistake.of(line && { from: line.from, to: line.to, at }) });
    onProblem(found && line ? `Line ${line.number}: ${found.message}` : null);
  };
  view.dispatch({
    effects: StateEffect.appendConfig.of(
      EditorView.updateListener.of(({ docChanged }) => {
        if (!docChanged) return;
        clearTimeout(timer);
        timer = setTimeout(check, CHECK_MS);
      }),
    ),
  });
  return { stop: () => clearTimeout(timer) };
}

interface Mistake {
  readonly from: number;
  readonly to: number;
  readonly at: number;
}

const markMistake = StateEffect.define<Mistake | undefined>();
const mistakenLine = Decoration.line({ class: 'cm-mistaken-line' });
const mistake = Decoration.mark({ class: 'cm-mistake' });

const mistakes = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, { effects, changes }) {
    const effect = effects.find((one) => one.is(markMistake));
    if (!effect) return before.map(changes);
    const { from, to, at } = (effect.value as Mistake | undefined) ?? { from: -1, to: -1, at: -1 };
    if (from < 0) return Decoration.none;
    const mark = to > from ? [mistake.range(Math.min(at, to - 1), to)] : [];
    return Decoration.set([mistakenLine.range(from), ...mark]);
  },
  provide: (field) => EditorView.decorations.from(field),
});

const colors = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: tags.number, color: 'var(--warning)' },
  { tag: [tags.bool, tags.null], color: 'var(--critical)' },
]);

/** The colours are the page's CSS variables, so that both themes apply. */
const theme = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--paper)', fontSize: '12.5px' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--ink)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--soft)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { backgroundColor: 'var(--raised)' },
  '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    backgroundColor: 'var(--accent-shade)',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--shade)', outline: '1px solid var(--line)' },
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'var(--critical-shade)' },
  '.cm-mistaken-line': { backgroundColor: 'var(--critical-shade) !important' },
  '.cm-mistake': { textDecoration: 'underline wavy var(--critical)' },
});
