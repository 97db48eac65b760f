/**
 * A list: rows of a page, or of many pages that are loaded while the reader scrolls. Only the rows in view are in the document. Arrow keys
 * move between rows, Enter opens one. Below 640 px a row has two lines, with the amount at the right.
 */
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, memo, type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import styles from './data-table.module.css';

export type Column<Row> = {
  readonly key: string;
  readonly header: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** Figures stand at the right. */
  readonly isFigure?: boolean;
  /** Track of the grid, such as `120px` or `minmax(160px, 2fr)`. */
  readonly width?: string;
  /** Place on a narrow screen: first line, second line, at the right, or left out. */
  readonly narrow?: 'first' | 'second' | 'end' | 'hidden';
};

type DataTableProps<Row> = {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  onOpen?: (row: Row) => void;
  /** The row whose sheet is open. */
  openKey?: string | null;
  /** All rows of the list, also those that are not loaded. */
  total?: number;
  /** There are more rows, in a list whose total is not known. */
  hasMore?: boolean;
  onEnd?: () => void;
  footer?: ReactNode;
};

const ROW_HEIGHT = 33;
/** Lists up to this length stand whole in the document, so that the browser finds all their texts. */
const WHOLE_MAX = 60;
const LOAD_AHEAD_ROWS = 10;

export function DataTable<Row>(props: DataTableProps<Row>): ReactNode {
  const texts = useTexts(TEXTS);
  const { label, columns, rows, rowKey, onOpen, openKey, onEnd, footer } = props;
  const { total = rows.length, hasMore = rows.length < total } = props;
  const body = useRef<HTMLDivElement>(null);
  const isVirtual = rows.length > WHOLE_MAX;
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    enabled: isVirtual,
    scrollMargin: body.current?.offsetTop ?? 0,
    getItemKey: (at) => rowKey(rows[at]!),
  });
  const items = isVirtual ? virtual.getVirtualItems() : [];
  const lastIndex = isVirtual ? (items.at(-1)?.index ?? 0) : rows.length - 1;
  useEffect(() => {
    if (lastIndex >= rows.length - LOAD_AHEAD_ROWS && hasMore) onEnd?.();
  }, [lastIndex, rows.length, hasMore, onEnd]);
  const tracks = columns.map(({ width }) => width ?? 'minmax(80px, 1fr)').join(' ');
  const grid = useMemo(() => ({ gridTemplateColumns: tracks }), [tracks]);
  const [wrap, isCut] = useSideScroll();
  const toRowProps = (row: Row, index: number) => ({
    ...{ columns, row, index, onOpen, grid },
    isOn: openKey === rowKey(row),
  });
  return (
    <div ref={wrap} className={styles.wrap} {...(isCut ? { tabIndex: 0, role: 'group', 'aria-label': label } : {})}>
      <div
        role="table"
        aria-label={label}
        aria-rowcount={hasMore && total <= rows.length ? -1 : total + 1}
        className={styles.table}
      >
        <div role="row" aria-rowindex={1} className={styles.header} style={grid}>
          {columns.map(({ key, header, isFigure }) => (
            <div key={key} role="columnheader" className={isFigure ? styles.figure : undefined}>
              {header}
            </div>
          ))}
        </div>
        <div
          role="rowgroup"
          ref={body}
          style={isVirtual ? { height: virtual.getTotalSize(), position: 'relative' } : undefined}
        >
          {isVirtual
            ? items.map((item) => (
                <MemoizedRow
                  key={item.key}
                  {...toRowProps(rows[item.index]!, item.index)}
                  measure={virtual.measureElement}
                  top={item.start - virtual.options.scrollMargin}
                />
              ))
            : rows.map((row, index) => <MemoizedRow key={rowKey(row)} {...toRowProps(row, index)} />)}
        </div>
      </div>
      {rows.length < total && <p className={styles.count}>{texts.loaded(rows.length, total)}</p>}
      {footer}
    </div>
  );
}

/** Whether the element is wider than its frame. The frame then takes the focus, so that a keyboard can scroll it. */
function useSideScroll(): [RefObject<HTMLDivElement | null>, boolean] {
  const element = useRef<HTMLDivElement>(null);
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    const observed = element.current!;
    const measure = () => setCut(observed.scrollWidth > observed.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(observed);
    // The rows change the width of the table, not that of its frame.
    for (const child of observed.children) observer.observe(child);
    return () => observer.disconnect();
  }, []);
  return [element, isCut];
}

type TableRowProps<Row> = Pick<DataTableProps<Row>, 'columns' | 'onOpen'> & {
  row: Row;
  index: number;
  isOn: boolean;
  grid: { gridTemplateColumns: string };
  measure?: (element: HTMLElement | null) => void;
  top?: number;
};

function TableRow<Row>({ columns, row, onOpen, index, isOn, grid, measure, top }: TableRowProps<Row>): ReactNode {
  const open = onOpen && (() => onOpen(row));
  return (
    <div
      role="row"
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      className={`${styles.row} ${open ? styles.opens : ''} ${isOn ? styles.on : ''}`}
      style={top === undefined ? grid : { ...grid, position: 'absolute', top, left: 0, right: 0 }}
      tabIndex={open ? 0 : undefined}
      onClick={open && ((event) => isPlainClick(event.target) && open())}
      onKeyDown={open && ((event) => moveOrOpen(event, open))}
    >
      {columns.map(({ key, cell, isFigure, narrow = 'second' }) => (
        <div key={key} role="cell" className={`${isFigure ? styles.figure : ''} ${styles[narrow] ?? ''}`}>
          {cell(row)}
        </div>
      ))}
    </div>
  );
}

/** While the reader scrolls, only rows that come into view are rendered. */
const MemoizedRow = memo(TableRow) as typeof TableRow;

/** A click on a link or a button inside a row is theirs, and one that ends a selection opens nothing. */
function isPlainClick(target: EventTarget): boolean {
  return target instanceof Element && !target.closest('a, button, input, label') && getSelection()?.type !== 'Range';
}

function moveOrOpen(event: KeyboardEvent<HTMLDivElement>, open: () => void): void {
  if (event.target !== event.currentTarget) return;
  const row = event.currentTarget;
  const next =
    event.key === 'ArrowDown' ? row.nextElementSibling : event.key === 'ArrowUp' ? row.previousElementSibling : null;
  if (event.key === 'Enter') open();
  else if (event.key === 'w') row.querySelector<HTMLButtonElement>('[data-why]')?.click();
  else if (next instanceof HTMLElement) next.focus();
  else return;
  event.preventDefault();
}

const TEXTS = defineTexts(
  { loaded: (shown: number, total: number) => `${shown} of ${total} loaded` },
  { de: { loaded: (shown, total) => `${shown} von ${total} geladen` } },
);
