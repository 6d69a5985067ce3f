import { defaultRangeExtractor, useVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { useEnded } from '../session/ended.ts';
import { formatNumber } from './format.ts';
import type { Endless, Place } from './pages.ts';
import { Loading, Problem } from './states.tsx';

export interface Column<Row> {
  readonly name: string;
  readonly title: string;
  /** A CSS track: `2fr`, `8rem`. */
  readonly width: string;
  /** Hidden below 900 px. */
  readonly isMinor?: boolean;
  /** The name of the field by which the server sorts. */
  readonly sort?: string;
  /** Aligned as a number. */
  readonly isNumber?: boolean;
  cell(row: Row): ReactNode;
}

export interface Sort {
  readonly field: string;
  readonly direction: 'asc' | 'desc';
}

interface DataTableProps<Row> {
  readonly label: string;
  readonly list: Endless<Row>;
  readonly columns: readonly Column<Row>[];
  readonly empty: ReactNode;
  readonly sort?: Sort | null;
  onSort?(sort: Sort): void;
  onOpen?(row: Row): void;
  /** If given, rows can be selected, by Space and by checkboxes. */
  readonly selected?: ReadonlySet<string>;
  onSelect?(ids: ReadonlySet<string>): void;
  toneOf?(row: Row): string | undefined;
  classOf?(row: Row): string | undefined;
  /** Further key bindings, which act on the current row. */
  readonly keys?: Readonly<Record<string, (row: Row) => void>>;
  /** The scrolling element. */
  readonly ref?: RefObject<HTMLDivElement | null>;
}

const ROW_HEIGHT = 36;
const OVERSCAN = 12;

/** A list as a virtualized table: arrows or `j` and `k` move, Enter opens, Space selects. Only visible rows are in the DOM. */
export function DataTable<Row extends { readonly id: string }>(props: DataTableProps<Row>) {
  const { label, list, columns, empty, sort, onSort, onOpen, selected, onSelect, toneOf, classOf, keys } = props;
  const { place, failure, show } = list;
  const id = label.replaceAll(' ', '-');
  const own = useRef<HTMLDivElement>(null);
  const scroller = props.ref ?? own;
  const [current, setCurrent] = useCurrentRow(list);
  const virtual = useVirtualizer({
    count: list.reach,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    // The sticky header covers the first row of the scrolled area.
    scrollPaddingEnd: ROW_HEIGHT,
    initialOffset: place.scrollTop,
    // `aria-activedescendant` refers to the current row, so it must always be in the DOM.
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), current])].sort((one, other) => one - other),
  });
  const items = virtual.getVirtualItems();
  const { startIndex, endIndex } = virtual.range ?? { startIndex: 0, endIndex: 0 };
  const isReady = !list.isLoading && list.count > 0;
  useEffect(() => {
    if (isReady) show(startIndex - OVERSCAN, endIndex + 2 * OVERSCAN);
  }, [isReady, show, startIndex, endIndex]);
  useTop(scroller);
  useRestoredPlace(scroller, place, isReady);
  useEnded(failure?.code);
  const move = (to: number) => {
    const next = Math.max(0, Math.min(list.reach - 1, to));
    setCurrent(next);
    virtual.scrollToIndex(next);
  };
  useLetterKeys(scroller, isReady, (step) => move(current + step));

  if (list.isLoading) return <Loading lines={10} />;
  if (list.count === 0) return failure ? <Problem failure={failure} retry={list.retry} /> : empty;

  const toggle = (row: Row) => {
    if (!selected || !onSelect) return;
    const next = new Set(selected);
    if (!next.delete(row.id)) next.add(row.id);
    onSelect(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const isForGrid = !(event.target as Element).closest('a, button, input');
    if (!isForGrid || event.metaKey || event.ctrlKey || event.altKey) return;
    const row = list.row(current);
    const rowsPerScreen = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_HEIGHT) - 2);
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(current + 1),
      j: () => move(current + 1),
      ArrowUp: () => move(current - 1),
      k: () => move(current - 1),
      PageDown: () => move(current + rowsPerScreen),
      PageUp: () => move(current - rowsPerScreen),
      Home: () => move(0),
      End: () => move(list.reach - 1),
      Enter: () => row && onOpen?.(row),
      ' ': () => row && toggle(row),
    };
    const other = keys?.[event.key];
    const action = actions[event.key] ?? (other && (() => row && other(row)));
    if (!action) return;
    event.preventDefault();
    action();
  };
  const onClickRow = (event: MouseEvent, index: number, row: Row | undefined) => {
    setCurrent(index);
    const isText = getSelection()?.type === 'Range';
    if (row && !isText && !(event.target as Element).closest('a, button, input')) onOpen?.(row);
  };
  return (
    <>
      {failure && <Problem failure={failure} retry={list.retry} />}
      <div
        className={failure ? 'table stale' : 'table'}
        role="grid"
        aria-label={label}
        aria-rowcount={list.count + 1}
        aria-activedescendant={`${id}-${current}`}
        aria-multiselectable={selected ? true : undefined}
        aria-busy={list.row(startIndex) ? undefined : true}
        tabIndex={0}
        ref={scroller}
        style={toTracks(columns, selected !== undefined)}
        onFocus={() => setCurrent(current)}
        onKeyDown={onKeyDown}
      >
        <div className="table-head" role="row" aria-rowindex={1}>
          {selected && (
            <span role="columnheader" className="cell">
              <span className="hidden">Selected</span>
            </span>
          )}
          {columns.map((column) => (
            <Header key={column.name} column={column} sort={sort} onSort={onSort} />
          ))}
        </div>
        <div role="rowgroup" className="table-body" style={{ height: virtual.getTotalSize() }}>
          {withoutDuplicates(items, list).map(({ index, start }) => {
            const row = list.row(index);
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys for its rows.
              <div
                key={row?.id ?? index}
                id={`${id}-${index}`}
                role="row"
                tabIndex={-1}
                aria-rowindex={index + 2}
                aria-selected={row && selected ? selected.has(row.id) : undefined}
                className={['table-row', index === current && 'current', onOpen && 'opens', row && classOf?.(row)]
                  .filter(Boolean)
                  .join(' ')}
                data-tone={row && toneOf?.(row)}
                style={{ transform: `translateY(${start}px)` }}
                onClick={(event) => onClickRow(event, index, row)}
              >
                {selected && (
                  <span role="gridcell" className="cell">
                    <input
                      type="checkbox"
                      tabIndex={-1}
                      aria-label="Select"
                      checked={row ? selected.has(row.id) : false}
                      onChange={() => row && toggle(row)}
                    />
                  </span>
                )}
                {columns.map((column) => (
                  <span key={column.name} role="gridcell" className={toClass(column)}>
                    {row ? column.cell(row) : <i className="cell-loading" />}
                  </span>
                ))}
              </div>
            );
          })}
        </div>
      </div>
      <p className="table-count" aria-live="polite">
        {formatNumber(list.count)} in all
        {selected && selected.size > 0 && `, ${formatNumber(selected.size)} selected`}
      </p>
    </>
  );
}

/** While pages shift, two of them can contain the same row: it is shown once. */
function withoutDuplicates<Row extends { readonly id: string }>(items: readonly VirtualItem[], list: Endless<Row>): readonly VirtualItem[] {
  const ids = new Set<string>();
  return items.filter(({ index }) => {
    const id = list.row(index)?.id;
    if (id === undefined) return true;
    return !ids.has(id) && ids.add(id);
  });
}

/** How many rows away the current row is searched for after others were inserted above it. */
const MAX_DISTANCE = 300;

/** Once the table has had the focus, the current row keeps its identity when rows are inserted above it; the list stores it. */
function useCurrentRow<Row extends { readonly id: string }>(list: Endless<Row>): readonly [number, (index: number) => void] {
  const { place, reach } = list;
  const [, setRenders] = useState(0);
  const found = place.id === null ? null : findNear(list, place.current, place.id);
  const current = Math.max(0, Math.min(found ?? place.current, reach - 1));
  const id = list.row(current)?.id ?? null;
  // A passive effect could run after the next key press and undo its move.
  useLayoutEffect(() => {
    if (place.id !== null && id !== null) Object.assign(place, { current, id });
  }, [place, current, id]);
  const set = (index: number) => {
    Object.assign(place, { current: index, id: list.row(index)?.id ?? null });
    setRenders((before) => before + 1);
  };
  return [current, set];
}

function findNear<Row extends { readonly id: string }>(list: Endless<Row>, index: number, id: string): number | null {
  for (let distance = 0; distance <= MAX_DISTANCE; distance += 1) {
    for (const place of [index + distance, index - distance]) if (place >= 0 && list.row(place)?.id === id) return place;
  }
  return null;
}

const toClass = <Row,>({ isMinor, isNumber }: Column<Row>) => `cell${isMinor ? ' minor' : ''}${isNumber ? ' number' : ''}`;

/** The CSS grid tracks of all columns, and of those on a narrow screen. */
function toTracks<Row>(columns: readonly Column<Row>[], isSelectable: boolean): CSSProperties {
  const toList = (shown: readonly Column<Row>[]) => [...(isSelectable ? ['1.25rem'] : []), ...shown.map(({ width }) => width)].join(' ');
  return { '--columns': toList(columns), '--columns-narrow': toList(columns.filter(({ isMinor }) => !isMinor)) } as CSSProperties;
}

function Header<Row>({ column, sort, onSort }: { column: Column<Row>; sort?: Sort | null; onSort?(sort: Sort): void }) {
  const isSorted = column.sort !== undefined && sort?.field === column.sort;
  const order = isSorted ? (sort?.direction === 'asc' ? 'ascending' : 'descending') : 'none';
  const arrow = <span aria-hidden="true">{order === 'none' ? '' : order === 'ascending' ? ' ↑' : ' ↓'}</span>;
  const { sort: field } = column;
  if (!field || !onSort) {
    return (
      <span role="columnheader" className={toClass(column)} aria-sort={isSorted ? order : undefined}>
        {column.title}
        {arrow}
      </span>
    );
  }
  return (
    <span role="columnheader" className={toClass(column)} aria-sort={order}>
      <button type="button" className="sort" onClick={() => onSort({ field, direction: order === 'ascending' ? 'desc' : 'asc' })}>
        {column.title}
        {arrow}
      </button>
    </span>
  );
}

/** Sets `--top`, so that the table fills the rest of the window's height. */
function useTop(scroller: RefObject<HTMLDivElement | null>) {
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element) element.style.setProperty('--top', `${Math.round(element.getBoundingClientRect().top + scrollY)}px`);
  });
}

/** Restores the scroll position and the keyboard focus when somebody comes back to a list. */
function useRestoredPlace(scroller: RefObject<HTMLDivElement | null>, place: Place, isReady: boolean) {
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !isReady) return;
    element.scrollTop = place.scrollTop;
    if (place.current > 0 && document.activeElement === document.body) element.focus({ preventScroll: true });
    const keep = () => {
      place.scrollTop = element.scrollTop;
    };
    element.addEventListener('scroll', keep, { passive: true });
    return () => element.removeEventListener('scroll', keep);
  }, [scroller, place, isReady]);
}

/** `j` and `k` focus the table from anywhere that does not handle letters itself. */
function useLetterKeys(scroller: RefObject<HTMLDivElement | null>, isReady: boolean, move: (step: number) => void) {
  const latest = useRef(move);
  latest.current = move;
  useEffect(() => {
    if (!isReady) return;
    const onKey = (event: globalThis.KeyboardEvent) => {
      const isTaken = (event.target as Element | null)?.closest('input, textarea, select, [contenteditable], [role], .terminal, canvas');
      if ((event.key !== 'j' && event.key !== 'k') || isTaken || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      scroller.current?.focus({ preventScroll: true });
      latest.current(event.key === 'j' ? 1 : -1);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [scroller, isReady]);
}
