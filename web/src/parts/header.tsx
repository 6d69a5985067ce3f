import { type Column, type Sort, toClass } from './column.ts';

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
