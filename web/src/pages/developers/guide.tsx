import { lexer } from 'marked';
import { useEffect, useMemo } from 'react';
import { Empty, Loading, Problem } from '../../parts/states.tsx';
import type { Reader } from './examples.ts';
import { type GuideEntry, useGuideText } from './fetch.ts';
import { Markdown } from './markdown.tsx';

interface GuideProps {
  readonly name: string;
  readonly base: string;
  readonly guides: readonly GuideEntry[];
  readonly reader: Reader;
}

export default function Guide({ name, base, guides, reader }: GuideProps) {
  const { value: text, failure, retry } = useGuideText(name);
  const tokens = useMemo(() => (text === null ? null : lexer(text)), [text]);
  const isThere = tokens !== null;
  useEffect(() => {
    if (isThere && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
    else if (isThere) scrollTo(0, 0);
  }, [isThere]);
  if (!guides.some((guide) => guide.name === name)) return <Empty title="There is no such guide" />;
  if (!tokens) return failure ? <Problem failure={failure} retry={retry} /> : <Loading lines={10} />;
  return <Markdown tokens={tokens} base={base} guides={guides} reader={reader} />;
}
