import { useQuery } from '@apollo/client/react';
import { Combobox, ComboboxItem, ComboboxPopover, ComboboxProvider, useComboboxStore } from '@ariakit/react';
import { type KeyboardEvent, useDeferredValue, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { graphql } from '../graphql/graphql.ts';
import { toFailure } from '../graphql/link.ts';
import { toPage } from '../parts/address.ts';
import { Badge } from '../parts/badge.tsx';
import { withholdComposition } from '../parts/composition.ts';
import { hasShortcuts, useShortcuts } from '../parts/shortcuts.ts';
import { useEnded } from '../session/ended.ts';
import { useLookup } from './lookup.ts';

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

/** Searches instances by name prefix, pages, and what an id belongs to; `/` focuses it from anywhere. */
export function Search({ projectId }: { projectId: string | null }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const prefix = useDeferredValue(text.trim());
  const [, navigate] = useLocation();
  const search = useQuery(SearchQuery, {
    variables: { id: projectId ?? '', text: prefix },
    skip: !projectId || !prefix,
    notifyOnNetworkStatusChange: true,
  });
  const lookup = useLookup(prefix);
  const loading = search.loading || lookup.loading;
  const error = search.error ?? lookup.error;
  const failure = error && !loading ? toFailure(error) : null;
  const retry = () => {
    for (const { error, refetch } of [search, lookup]) if (error) refetch().catch(() => {});
  };
  useEnded(failure?.code);
  const combobox = useComboboxStore({ value: text, setValue: setText });
  // Enter pressed before there is a result for the text opens the first one once it has arrived.
  const [isAwaited, setAwaited] = useState(false);
  useSlash(input);
  const hasSlash = useShortcuts();
  const { found } = lookup;
  const instances = (prefix && search.data?.project?.instances.nodes) || [];
  const matchingPages = prefix ? pages.filter((page) => page.startsWith(prefix.toLowerCase())) : [];
  const matches = [...matchingPages, ...instances.map(({ id }) => `instances/${id}`)].map((page) => toPage(projectId ?? '', page));
  const addresses = found ? [found.address, ...matches] : matches;
  const open = (address: string) => {
    setAwaited(false);
    setText('');
    input.current?.blur();
    navigate(address);
  };
  const isUpToDate = prefix === text.trim();
  const first = isUpToDate ? addresses[0] : undefined;
  useEffect(() => {
    if (isAwaited && first) open(first);
  });
  if (!projectId) return <span className="search" />;
  const onKeyDownCapture = (event: KeyboardEvent) => {
    if (withholdComposition(event)) return;
    const { activeId } = combobox.getState();
    const isAhead = event.key === 'Enter' && !(isUpToDate && activeId && combobox.item(activeId));
    // The active item may be one that the text before had found.
    if (isAhead) event.preventDefault();
    setAwaited(isAhead);
  };
  return (
    <search className="search">
      <ComboboxProvider store={combobox}>
        <Combobox
          ref={input}
          className="input"
          placeholder={hasSlash ? 'Search ( / )' : 'Search'}
          aria-label="Search instances and pages"
          autoSelect
          maxLength={255}
          onKeyDownCapture={onKeyDownCapture}
          onBlur={() => setAwaited(false)}
        />
        {prefix !== '' && (
          <ComboboxPopover className="sheet" gutter={4} sameWidth portal aria-label="Found">
            {found && (
              <ComboboxItem className="sheet-item" setValueOnClick={false} onClick={() => open(found.address)}>
                {found.label}
              </ComboboxItem>
            )}
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
            {loading && <p className="sheet-head">Searching …</p>}
            {failure && <p className="sheet-head">The instances could not be searched. {failure.message}</p>}
            {failure && (
              <ComboboxItem className="sheet-item" setValueOnClick={false} hideOnClick={false} onClick={retry}>
                Try again
              </ComboboxItem>
            )}
            {search.data && !loading && !failure && addresses.length === 0 && (
              <p className="sheet-head">Nothing begins so. In names of instances, capitals count.</p>
            )}
          </ComboboxPopover>
        )}
      </ComboboxProvider>
    </search>
  );
}

function useSlash(input: React.RefObject<HTMLInputElement | null>) {
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      const isTyping = (event.target as Element | null)?.closest('input, textarea, select, [contenteditable], .terminal, canvas');
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || !hasShortcuts()) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [input]);
}
