import type { CSSProperties, MouseEvent } from 'react';
import { type Column, toClass } from './column.ts';

interface TableRowProps<Row> {
  readonly id: string;
  readonly index: number;
  /** Undefined while it is loading. */
  readonly row: Row | undefined;
  readonly columns: readonly Column<Row>[];
  readonly className: string;
  readonly tone: string | undefined;
  readonly style: CSSProperties;
  /** Undefined if rows cannot be selected. */
  readonly isSelected: boolean | undefined;
  onSelect(): void;
  onClick(event: MouseEvent): void;
}

export function TableRow<Row>({ id, index, row, columns, className, tone, style, isSelected, onSelect, onClick }: TableRowProps<Row>) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles the keys for its rows.
    <div
      id={id}
      role="row"
      tabIndex={-1}
      aria-rowindex={index + 2}
      aria-selected={row ? isSelected : undefined}
      className={className}
      data-tone={tone}
      style={style}
      onClick={onClick}
    >
      {isSelected !== undefined && (
        <span role="gridcell" className="cell">
          <input type="checkbox" tabIndex={-1} aria-label="Select" checked={isSelected} onChange={onSelect} />
        </span>
      )}
      {columns.map((column) => (
        <span key={column.name} role="gridcell" className={toClass(column)}>
          {row ? column.cell(row) : <i className="cell-loading" />}
        </span>
      ))}
    </div>
  );
}
