import { useQuery } from '@apollo/client/react';
import { Combobox, ComboboxItem, ComboboxPopover, ComboboxProvider } from '@ariakit/react';
import { useDeferredValue, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { graphql } from '../graphql/graphql.ts';
import { toPage } from '../parts/address.ts';
import { Badge } from '../parts/badge.tsx';

const SearchQuery = graphql(`
  query Search($id: ID!, $text: Text!) {
    project(id: $id) {
      id
      instances(first: 8, filter: { namePrefix: $text }, orderBy: { field: name }) {
        nodes {
          id
          name
          status
        }
      }
    }
  }
`);

const pages = ['notifications', 'instances', 'tasks', 'storage', 'dashboards', 'people', 'developers'];

/** Searches instances by name prefix, and pages; `/` focuses it from anywhere. */
export function Search({ projectId }: { projectId: string | null }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const prefix = useDeferredValue(text.trim());
  const [, navigate] = useLocation();
  const { data } = useQuery(SearchQuery, { variables: { id: projectId ?? '', text: prefix }, skip: !projectId || !prefix });
  useSlash(input);
  if (!projectId) return <span className="search" />;
  const instances = (prefix && data?.project?.instances.nodes) || [];
  const matchingPages = prefix ? pages.filter((page) => page.startsWith(prefix.toLowerCase())) : [];
  const open = (address: string) => {
    setText('');
    input.current?.blur();
    navigate(address);
  };
  return (
    <search className="search">
      <ComboboxProvider value={text} setValue={setText}>
        <Combobox ref={input} className="input" placeholder="Search ( / )" aria-label="Search instances and pages" autoSelect />
        {prefix !== '' && (
          <ComboboxPopover className="sheet" gutter={4} sameWidth portal aria-label="Found">
            {matchingPages.map((page) => (
              <ComboboxItem key={page} className="sheet-item" setValueOnClick={false} onClick={() => open(toPage(projectId, page))}>
                Page: {page}
              </ComboboxItem>
            ))}
            {instances.map(({ id, name, status }) => (
              <ComboboxItem
                key={id}
                className="sheet-item"
                setValueOnClick={false}
                onClick={() => open(toPage(projectId, `instances/${id}`))}
              >
                {name} <Badge value={status} />
              </ComboboxItem>
            ))}
            {matchingPages.length + instances.length === 0 && <p className="sheet-head">Nothing begins so.</p>}
          </ComboboxPopover>
        )}
      </ComboboxProvider>
    </search>
  );
}

function useSlash(input: React.RefObject<HTMLInputElement | null>) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element | null)?.closest('input, textarea, select, [contenteditable], .terminal, canvas');
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [input]);
}
