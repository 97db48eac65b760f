import type { ReactNode } from 'react';
import { useLanguage } from '../texts/texts.ts';
import styles from './figures.module.css';
import { formatQuantity, splitMoney } from './format.ts';

/**
 * An amount of money. The minor units are lighter where the amount is one unit or more. Without `currency`, or if it `isBare` (the table
 * names the currency), only the number stands. An amount that is not known is "–", never 0.
 */
export function Money({
  amount,
  currency = null,
  isBare = false,
}: {
  amount: string | null | undefined;
  currency?: string | null;
  isBare?: boolean;
}): ReactNode {
  const language = useLanguage();
  if (amount === null || amount === undefined) return <Unknown />;
  const { sign, symbol, major, minor, isSymbolLast } = splitMoney(language, amount, currency);
  const isWhole = /[1-9]/.test(major);
  return (
    <span className={styles.figure}>
      {sign}
      {!isSymbolLast && !isBare && symbol}
      {major}
      <span className={isWhole ? styles.minor : undefined}>{minor}</span>
      {isSymbolLast && !isBare && symbol !== '' && ` ${symbol}`}
    </span>
  );
}

/** A quantity with all its digits and, if given, its unit. */
export function Quantity({ value, unit }: { value: string | null | undefined; unit?: string | null }): ReactNode {
  const language = useLanguage();
  if (value === null || value === undefined) return <Unknown />;
  return (
    <span className={styles.figure}>
      {formatQuantity(language, value)}
      {unit ? ` ${unit}` : ''}
    </span>
  );
}

/** The one figure of a page. */
export function BigMoney(props: { amount: string | null | undefined; currency?: string | null }): ReactNode {
  return (
    <span className={styles.big}>
      <Money {...props} />
    </span>
  );
}

export function Unknown(): ReactNode {
  return <span className={styles.minor}>–</span>;
}

/**
 * A computed number: a button with the dotted copper line that opens its thread. `why` is the accessible question, such as
 * "Why 2,309.11?".
 */
export function WhyButton({
  children,
  why,
  onOpen,
}: {
  children: ReactNode;
  why: string;
  onOpen: () => void;
}): ReactNode {
  return (
    <button type="button" className={styles.why} onClick={onOpen} title={why} data-why>
      {children}
      <span className="visually-hidden">, {why}</span>
    </button>
  );
}
