import type { CSSProperties } from 'react';
import type { Column, Sort } from './table.tsx';

/** The CSS class of the cells of a column. */
export const toClass = <Row,>({ isMinor, isNumber }: Column<Row>) => `cell${isMinor ? ' minor' : ''}${isNumber ? ' number' : ''}`;

/** The CSS grid tracks of all columns, and of those on a narrow screen. */
export function toTracks<Row>(columns: readonly Column<Row>[], isSelectable: boolean): CSSProperties {
  const toList = (shown: readonly Column<Row>[]) => [...(isSelectable ? ['1.25rem'] : []), ...shown.map(({ width }) => width)].join(' ');
  return { '--columns': toList(columns), '--columns-narrow': toList(columns.filter(({ isMinor }) => !isMinor)) } as CSSProperties;
}

/** The heading of a column, which sorts if the list can be sorted by it. */
export function Header<Row>({ column, sort, onSort }: { column: Column<Row>; sort?: Sort | null; onSort?(sort: Sort): void }) {
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
