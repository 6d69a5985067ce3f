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
 * Renders a guide's tokens as elements. Tokens without a case below become text, so HTML in a guide is never markup.
 * The reader's ids and address replace those of the demo.
 */
export function Markdown({ tokens, ...context }: Context & { readonly tokens: readonly Token[] }) {
  return <>{renderAll(tokens, context)}</>;
}

const renderAll = (tokens: readonly Token[] | undefined, context: Context): ReactNode =>
  createElement(Fragment, null, ...(tokens ?? []).map((token) => one(token as MarkedToken, context)));

function one(token: MarkedToken, context: Context): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      return createElement(`h${token.depth}`, { id: anchorOf(token.text) }, renderAll(token.tokens, context));
    case 'paragraph':
      return <p>{renderAll(token.tokens, context)}</p>;
    case 'code':
      return <Code text={fillInExample(token.text, token.lang ?? '', context.reader)} />;
    case 'list':
      return createElement(
        token.ordered ? 'ol' : 'ul',
        null,
        ...token.items.map((item) => createElement('li', null, renderAll(item.tokens, context))),
      );
    case 'table':
      return table(token, context);
    case 'blockquote':
      return <blockquote>{renderAll(token.tokens, context)}</blockquote>;
    case 'hr':
      return <hr />;
    case 'strong':
      return <strong>{renderAll(token.tokens, context)}</strong>;
    case 'em':
      return <em>{renderAll(token.tokens, context)}</em>;
    case 'br':
      return <br />;
    case 'codespan':
      return <code>{fillIn(token.text, context.reader)}</code>;
    case 'link':
      return link(token, context);
    case 'text':
      return token.tokens ? renderAll(token.tokens, context) : fillIn(token.text, context.reader);
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
    createElement('tr', null, ...row.map(({ tokens }) => createElement(name, null, renderAll(tokens, context))));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table wider than the page must scroll with the keyboard too.
    <div className="wide" tabIndex={0}>
      <table>
        <thead>{cells('th', header)}</thead>
        {createElement('tbody', null, ...rows.map((row) => cells('td', row)))}
      </table>
    </div>
  );
}

/** Links guides within the desk, and the API reference and GraphiQL in a signed-in tab; a file only in the repository is text. */
function link({ href, text, tokens }: Tokens.Link, context: Context): ReactNode {
  const content = renderAll(tokens, context);
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

/** The heading's anchor as GitHub generates it. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
