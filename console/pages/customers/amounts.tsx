/** Amounts by currency. Nothing is summed across currencies. */
import type { ReactNode } from 'react';
import { Money, Unknown } from '../../figures/money.tsx';
import type { SummedAmount } from './customer.ts';
import styles from './customers.module.css';

/** In a table whose header names the only currency the amounts are bare; a narrow screen has no header. Without an amount it is "–" or, if `isZero`, 0. */
export function Amounts({
  amounts,
  isBare = false,
  isZero = false,
}: {
  amounts: readonly SummedAmount[];
  isBare?: boolean;
  isZero?: boolean;
}): ReactNode {
  if (amounts.length === 0) return isZero ? <span className="muted">0</span> : <Unknown />;
  return (
    <span className={styles.amounts}>
      {amounts.map(({ currency, amount }) => (
        <span key={currency}>
          <span className={isBare ? styles.narrowCode : styles.code}>{currency.toUpperCase()} </span>
          <Money amount={amount} currency={currency} isBare />
        </span>
      ))}
    </span>
  );
}
