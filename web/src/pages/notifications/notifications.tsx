import { type RefObject, useEffect, useRef, useState } from 'react';
import { useAddress } from '../../parts/address.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Column } from '../../parts/column.ts';
import { formatNumber } from '../../parts/format.ts';
import { type Endless, useEndless } from '../../parts/pages.ts';
import { hasShortcuts, useShortcuts } from '../../parts/shortcuts.ts';
import { Empty } from '../../parts/states.tsx';
import { DataTable } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { useArrivals } from './arrivals.ts';
import { Filters, isFiltered, noFilter, useFilter } from './filters.tsx';
import { type Marking, useMarking } from './marking.ts';
import { NewsLines, NotLive } from './news.tsx';
import './notifications.css';
import { Opened } from './opened.tsx';
import { type Filter, NotificationsQuery, type Row } from './row.ts';

/** The project's notifications, live, the newest first. */
export default function Notifications({ projectId }: { projectId: string }) {
  const filter = useFilter();
  const { get, set } = useAddress();
  const marking = useMarking(projectId);
  const table = useRef<HTMLDivElement>(null);
  const [kinds, setKinds] = useState<readonly string[]>([]);
  return (
    <>
      <h1>Notifications</h1>
      <NotLive />
      <Filters filter={filter} kinds={kinds} />
      <Feed key={JSON.stringify(filter)} projectId={projectId} filter={filter} marking={marking} table={table} onKinds={setKinds} />
      <Opened
        projectId={projectId}
        id={get('open')}
        marking={marking}
        back={table}
        onClose={() => set({ open: null }, { replace: true })}
      />
    </>
  );
}

interface FeedProps {
  readonly projectId: string;
  readonly filter: Filter;
  readonly marking: Marking;
  readonly table: RefObject<HTMLDivElement | null>;
  onKinds(kinds: readonly string[]): void;
}

/** The list with one filter; the component is remounted for another one. The filters, one of which has the focus then, are not. */
function Feed({ projectId, filter, marking, table, onKinds }: FeedProps) {
  const { get, set } = useAddress();
  const hasLetters = useShortcuts();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const read = useEndless({
    document: NotificationsQuery,
    variables: { id: projectId, filter },
    parent: { __typename: 'Project', id: projectId },
    field: 'notifications',
    pick: ({ project }) => project?.notifications,
  });
  const news = useArrivals(projectId, read, filter, () => (table.current?.scrollTop ?? 0) < 1);
  const kinds = JSON.stringify(listKinds(news.list));
  useEffect(() => onKinds(JSON.parse(kinds)), [onKinds, kinds]);
  const opened = get('open');
  // With the filter “unread”, rows marked one by one stay in place; only marking many at once reloads the list.
  const tidy = (isMarked: boolean) => isMarked && filter.unread && news.readAnew();
  const markSelected = async () => {
    setSelected(new Set());
    const isMarked = await marking.markThese([...selected]);
    if (!isMarked) setSelected((since) => new Set([...selected, ...since]));
    tidy(isMarked);
  };
  useReadKey(() => {
    if (opened) marking.markThese([opened]);
    else if (selected.size > 0) markSelected();
  });
  return (
    <>
      <Actions
        marking={marking}
        selected={selected.size}
        isEmpty={news.list.count === 0}
        onSelected={() => {
          // The button goes, and the focus would be lost with it.
          table.current?.focus({ preventScroll: true });
          markSelected();
        }}
        onShown={() =>
          (filter.severity || filter.kind
            ? marking.markFiltered(filter, news.shownThrough)
            : marking.markThrough(news.shownThrough, news.unseen)
          ).then(tidy)
        }
        onAll={() => marking.markAll(Math.max(news.newest, news.shownThrough)).then(tidy)}
      />
      <NewsLines news={news} onTop={() => table.current?.scrollTo({ top: 0 })} />
      <DataTable
        ref={table}
        label="Notifications"
        list={news.list}
        columns={columns}
        selected={selected}
        onSelect={setSelected}
        onOpen={({ id }) => set({ open: id })}
        keys={{ r: (row) => opened === null && selected.size === 0 && marking.markThese([row.id]) }}
        classOf={({ id, read: isRead }) => [!isRead && 'unread', news.fresh.has(id) && 'fresh'].filter(Boolean).join(' ')}
        empty={<Nothing isFilter={isFiltered(filter)} />}
      />
      <p className="key-help">
        {hasLetters ? (
          <>
            <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>Space</kbd> selects, <kbd>r</kbd> marks as read
          </>
        ) : (
          <>
            <kbd>↓</kbd> <kbd>↑</kbd> move, <kbd>Enter</kbd> opens, <kbd>Space</kbd> selects
          </>
        )}
      </p>
    </>
  );
}

interface ActionsProps {
  readonly marking: Marking;
  readonly selected: number;
  /** Nothing is shown. */
  readonly isEmpty: boolean;
  onSelected(): void;
  onShown(): void;
  onAll(): void;
}

function Actions({ marking, selected, isEmpty, onSelected, onShown, onAll }: ActionsProps) {
  const { unread, isBusy, failure, forgetFailure } = marking;
  const canMark = unread > 0 && !isBusy;
  return (
    <>
      <div className="actions">
        {selected > 0 && (
          <button type="button" className="button primary" onClick={onSelected}>
            Mark {formatNumber(selected)} selected as read
          </button>
        )}
        <button
          type="button"
          className="button"
          aria-disabled={!canMark || isEmpty}
          title="All of this list, down to its end; not what has come since and is not shown"
          onClick={() => canMark && !isEmpty && onShown()}
        >
          Mark shown as read
        </button>
        <button type="button" className="button" aria-disabled={!canMark} title="All of the project" onClick={() => canMark && onAll()}>
          Mark all as read
        </button>
        <span className="unread-count">{unread === 0 ? 'All are read' : `${formatNumber(unread)} unread`}</span>
      </div>
      {failure && (
        <p className="news-line refused" data-tone="critical" role="alert">
          Not marked: {failure.message}{' '}
          <button type="button" className="button small" onClick={forgetFailure}>
            Close
          </button>
        </p>
      )}
    </>
  );
}

const columns: readonly Column<Row>[] = [
  { name: 'severity', title: 'Severity', width: '5.5rem', cell: ({ severity }) => <Badge value={severity} /> },
  { name: 'title', title: 'Title', width: 'minmax(0, 1fr)', cell: (row) => <Title row={row} /> },
  { name: 'kind', title: 'Kind', width: '13rem', isMinor: true, cell: ({ kind }) => <bdi>{kind}</bdi> },
  { name: 'created', title: 'Time', width: 'clamp(5rem, 9vw, 6.5rem)', cell: ({ created }) => <Time value={created} /> },
  { name: 'read', title: 'State', width: '4.5rem', isMinor: true, cell: ({ read }) => (read ? 'read' : 'unread') },
];

/** On a narrow screen, which has no state column, screen readers get “unread” from here: bold type is only visible. */
const Title = ({ row: { title, read } }: { row: Row }) => (
  <>
    {!read && <span className="hidden narrow">unread </span>}
    <bdi className="title">{title}</bdi>
  </>
);

function Nothing({ isFilter }: { isFilter: boolean }) {
  const { set } = useAddress();
  if (isFilter) {
    return (
      <Empty title="No notification is like this">
        <button type="button" className="button" onClick={() => set(noFilter)}>
          Show all
        </button>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing has happened yet">
      <p>Here stands what happens to the project and its instances, as it happens. An admin can publish something:</p>
      <pre>portico publish "Maintenance on Sunday" --kind maintenance.scheduled --severity warning</pre>
    </Empty>
  );
}

/** The kinds of the loaded notifications, sorted by name. */
const listKinds = (list: Endless<Row>): string[] => [...new Set(list.loaded().map(({ kind }) => kind))].sort();

/** Where text is typed, and menus, which look for what begins with the letter. */
const taken = 'input:not([type="checkbox"]), textarea, select, [contenteditable], .sheet, .drawer';

/** The key `r`, except where it is for something else. */
function useReadKey(onKey: () => void) {
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'r' || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
      if (hasShortcuts() && !(event.target as Element | null)?.closest(taken)) latest.current();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}
