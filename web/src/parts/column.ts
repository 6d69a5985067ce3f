import type { CSSProperties, ReactNode } from 'react';

/** A column of a table. */
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

export interface Sort<Field extends string = string> {
  readonly field: Field;
  readonly direction: 'asc' | 'desc';
}

/** The CSS class of the cells of a column. */
export const toClass = <Row>({ isMinor, isNumber }: Column<Row>) => `cell${isMinor ? ' minor' : ''}${isNumber ? ' number' : ''}`;

/** The CSS grid tracks of all columns, and of those on a narrow screen. */
export function toTracks<Row>(columns: readonly Column<Row>[], isSelectable: boolean): CSSProperties {
  const toList = (shown: readonly Column<Row>[]) => [...(isSelectable ? ['1.25rem'] : []), ...shown.map(({ width }) => width)].join(' ');
  return { '--columns': toList(columns), '--columns-narrow': toList(columns.filter(({ isMinor }) => !isMinor)) } as CSSProperties;
}
