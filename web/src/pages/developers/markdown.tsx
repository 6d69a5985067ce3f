import type { MarkedToken, Token, Tokens } from 'marked';
import { createElement, Fragment, type ReactNode } from 'react';
import { Link } from 'wouter';
import { Code } from './code.tsx';
import { Door } from './door.tsx';
import { fillIn, fillInExample, type Reader } from './examples.ts';
import type { GuideEntry } from './fetch.ts';

interface Context {
  readonly base: string;
  readonly guides: readonly GuideEntry[];
  readonly reader: Reader;
}

/**
 * The tokens of a guide as elements: what no case below makes is text, so nothing that a guide says becomes markup of its own. The
 * reader's ids and address stand in it in the place of the demo's.
 */
export function Markdown({ tokens, ...context }: Context & { readonly tokens: readonly Token[] }) {
  return <>{all(tokens, context)}</>;
}

const all = (tokens: readonly Token[] | undefined, context: Context): ReactNode =>
  createElement(Fragment, null, ...(tokens ?? []).map((token) => one(token as MarkedToken, context)));

function one(token: MarkedToken, context: Context): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      return createElement(`h${token.depth}`, { id: anchorOf(token.text) }, all(token.tokens, context));
    case 'paragraph':
      return <p>{all(token.tokens, context)}</p>;
    case 'code':
      return <Code text={fillInExample(token.text, token.lang ?? '', context.reader)} />;
    case 'list':
      return createElement(
        token.ordered ? 'ol' : 'ul',
        null,
        ...token.items.map((item) => createElement('li', null, all(item.tokens, context))),
      );
    case 'table':
      return table(token, context);
    case 'blockquote':
      return <blockquote>{all(token.tokens, context)}</blockquote>;
    case 'hr':
      return <hr />;
    case 'strong':
      return <strong>{all(token.tokens, context)}</strong>;
    case 'em':
      return <em>{all(token.tokens, context)}</em>;
    case 'br':
      return <br />;
    case 'codespan':
      return <code>{fillIn(token.text, context.reader)}</code>;
    case 'link':
      return link(token, context);
    case 'text':
      return token.tokens ? all(token.tokens, context) : fillIn(token.text, context.reader);
    case 'escape':
      return token.text;
    case 'html':
      return token.text.startsWith('<!--') ? null : token.raw;
    default:
      return token.raw;
  }
}

function table({ header, rows }: Tokens.Table, context: Context): ReactNode {
  const cells = (name: 'th' | 'td', row: readonly Tokens.TableCell[]) =>
    createElement('tr', null, ...row.map(({ tokens }) => createElement(name, null, all(tokens, context))));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what is wider than the page is scrolled, with the keyboard too.
    <div className="wide" tabIndex={0}>
      <table>
        <thead>{cells('th', header)}</thead>
        {createElement('tbody', null, ...rows.map((row) => cells('td', row)))}
      </table>
    </div>
  );
}

/** To another guide within the desk; to the reference and GraphiQL in a tab that is signed in too; what lies in the repository alone is text. */
function link({ href, text, tokens }: Tokens.Link, context: Context): ReactNode {
  const content = all(tokens, context);
  if (href.startsWith('#')) return <a href={href}>{content}</a>;
  const [, name = '', anchor = ''] = /^(\w+)\.md(#.*)?$/.exec(href) ?? [];
  const guide = context.guides.find((one) => one.name === name);
  if (guide) return <Link href={`${context.base}/${name}${anchor}`}>{text === `${name}.md` ? guide.title : content}</Link>;
  const [, door] = /^http:\/\/localhost:4000(\/\w+)$/.exec(href) ?? [];
  if (door) return <Door to={door}>{content}</Door>;
  if (!href.startsWith('https:')) return content;
  return (
    <a href={href} target="_blank" rel="noreferrer">
      {content}
    </a>
  );
}

/** As GitHub names it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
