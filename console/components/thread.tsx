/**
 * The thread: how a number came about, as knots on one copper line. It runs from an amount back to its events, or from an event forward to
 * the next invoice.
 */
import { type ReactNode, useState } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import styles from './thread.module.css';

export function Thread({ children }: { children: ReactNode }): ReactNode {
  return <ol className={styles.thread}>{children}</ol>;
}

type KnotProps = {
  title: ReactNode;
  /** Stands at the right of the title: the figure of this step, or a chip. */
  value?: ReactNode;
  /** The first and the last knot are filled, and those of steps that are done. */
  isFilled?: boolean;
  children?: ReactNode;
};

export function Knot({ title, value, isFilled = false, children }: KnotProps): ReactNode {
  return (
    <li className={`${styles.knot} ${isFilled ? styles.filled : ''}`}>
      <div className={styles.sum}>
        <span>{title}</span>
        {value !== undefined && <span className={styles.value}>{value}</span>}
      </div>
      {children !== undefined && <div className={styles.detail}>{children}</div>}
    </li>
  );
}

/** One row of a sum that is written out: "first 100,000,000", "× 3.00 / 1 M", "300.00". */
export type SumRow = {
  readonly key: string;
  readonly what: ReactNode;
  readonly times?: ReactNode;
  readonly amount: ReactNode;
};

const ROWS_MAX = 12;
const ROWS_AT_ENDS = 4;

/** A sum written out, with its total. Of more than twelve rows the middle is collapsed. */
export function WrittenSum({ rows, total }: { rows: readonly SumRow[]; total?: SumRow }): ReactNode {
  const texts = useTexts(TEXTS);
  const [isOpen, setOpen] = useState(false);
  const isLong = rows.length > ROWS_MAX && !isOpen;
  const first = isLong ? rows.slice(0, ROWS_AT_ENDS) : rows;
  const last = isLong ? rows.slice(-ROWS_AT_ENDS) : [];
  return (
    <table className={styles.equation}>
      <tbody>
        {first.map(showRow)}
        {isLong && (
          <tr>
            <td colSpan={3}>
              <button type="button" className={styles.more} onClick={() => setOpen(true)}>
                {texts.more(rows.length - 2 * ROWS_AT_ENDS)}
              </button>
            </td>
          </tr>
        )}
        {last.map(showRow)}
        {total && (
          <tr className={styles.total}>
            <td>{total.what}</td>
            <td>{total.times}</td>
            <td>{total.amount}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function showRow({ key, what, times, amount }: SumRow): ReactNode {
  return (
    <tr key={key}>
      <td>{what}</td>
      <td>{times}</td>
      <td>{amount}</td>
    </tr>
  );
}

const TEXTS = defineTexts(
  { more: (count: number) => `show ${count} more` },
  { de: { more: (count) => `${count} weitere zeigen` } },
);
