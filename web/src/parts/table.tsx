import { defaultRangeExtractor, useVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
import { type KeyboardEvent, type MouseEvent, type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef } from 'react';
import { useEnded } from '../session/ended.ts';
import { type Column, type Sort, toTracks } from './column.ts';
import { formatNumber } from './format.ts';
import { Header } from './header.tsx';
import { runKey, useEntryKeys } from './keys.ts';
import type { Endless } from './pages.ts';
import { useCurrentRow, useRestoredPlace } from './place.ts';
import { TableRow } from './row.tsx';
import { Loading, Problem } from './states.tsx';

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
  const { label, list, columns, empty, sort, onSort, onOpen, selected, onSelect, toneOf, classOf, keys = {} } = props;
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
    rangeExtractor: (range) =>
      [...new Set([...defaultRangeExtractor(range), ...(current < 0 ? [] : [current])])].sort((one, other) => one - other),
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
    // A control of a row may have the focus, which would be lost with the row.
    scroller.current?.focus({ preventScroll: true });
    const next = Math.max(0, Math.min(list.reach - 1, to));
    setCurrent(next);
    virtual.scrollToIndex(next);
  };
  useEntryKeys(scroller, isReady, () => move(current));

  // The header stays while rows in another order are loading: a button of it has the focus.
  const hasHeader = useRef(false);
  hasHeader.current = isReady || (hasHeader.current && list.isLoading);
  if (list.isLoading && !hasHeader.current) return <Loading lines={10} />;
  if (list.count === 0 && !list.isLoading) return failure ? <Problem failure={failure} retry={list.retry} /> : empty;

  const toggle = (row: Row) => {
    if (!selected || !onSelect) return;
    const next = new Set(selected);
    if (!next.delete(row.id)) next.add(row.id);
    onSelect(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = list.row(current);
    const rowsPerScreen = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_HEIGHT) - 2);
    const others = Object.entries(keys).map(([key, act]) => [key, () => row && act(row)] as const);
    runKey(event, {
      ...Object.fromEntries(others),
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
    });
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
        aria-rowcount={isReady ? list.count + 1 : -1}
        aria-activedescendant={current < 0 || !isReady ? undefined : `${id}-${current}`}
        aria-multiselectable={selected ? true : undefined}
        aria-busy={list.row(startIndex) ? undefined : true}
        tabIndex={0}
        ref={scroller}
        style={toTracks(columns, selected !== undefined)}
        onFocus={({ target }) => setCurrent(Math.max(0, indexOfRow(target) ?? current))}
        onKeyDown={isReady ? onKeyDown : undefined}
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
            const classes = ['table-row', index === current && 'current', onOpen && 'opens', row && classOf?.(row)];
            return (
              <TableRow
                key={row?.id ?? index}
                id={`${id}-${index}`}
                index={index}
                row={row}
                columns={columns}
                className={classes.filter(Boolean).join(' ')}
                tone={row && toneOf?.(row)}
                style={{ transform: `translateY(${start}px)` }}
                isSelected={selected && row !== undefined && selected.has(row.id)}
                onSelect={() => row && toggle(row)}
                onClick={(event) => onClickRow(event, index, row)}
              />
            );
          })}
        </div>
      </div>
      {isReady ? (
        <p className="table-count" aria-live="polite">
          {formatNumber(list.count)} in all
          {selected && selected.size > 0 && `, ${formatNumber(selected.size)} selected`}
        </p>
      ) : (
        <Loading lines={10} />
      )}
    </>
  );
}

/** The index of the row that an element belongs to; null outside of the rows. */
function indexOfRow(element: Element): number | null {
  const row = element.closest('.table-row');
  return row && Number(row.getAttribute('aria-rowindex')) - 2;
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

/** Sets `--top`, so that the table fills the rest of the window's height. */
function useTop(scroller: RefObject<HTMLDivElement | null>) {
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element) element.style.setProperty('--top', `${Math.round(element.getBoundingClientRect().top + scrollY)}px`);
  });
}
