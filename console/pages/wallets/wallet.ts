/** Records of the pages of wallets. */

import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import type { ChartPoint } from '../../charts/series.ts';
import type { components } from '../../client/openapi.d.ts';

export type WalletRecord = components['schemas']['WalletResponse'];
/** A wallet with its balance after the usage that is not billed yet. */
export type LiveWallet = WalletRecord & {
  current_period_usage: string | null;
  unpaid_invoices_amount: string | null;
  as_of: string | null;
};
export type TransactionRecord = components['schemas']['WalletTransactionResponse'];

/** Wallets may have no name; the currency then names them. */
export function formatWalletName({ name, currency }: Pick<WalletRecord, 'name' | 'currency'>): string {
  return name || currency.toUpperCase();
}

/** Whether one credit is one unit of the currency, so that credits and money are the same number. */
export function isMoneyWallet({ conversion_rate }: Pick<WalletRecord, 'conversion_rate'>): boolean {
  return /^1(\.0+)?$/.test(conversion_rate);
}

type LedgerFields = Pick<
  TransactionRecord,
  'created_at' | 'credit_balance_before' | 'credit_balance_after' | 'transaction_status'
>;

/** The balance over time as steps, from the newest-first ledger: each movement ends the level before it. */
export function listBalanceSteps(ledger: readonly LedgerFields[]): ChartPoint[] {
  const done = ledger.filter(({ transaction_status }) => transaction_status === 'completed').toReversed();
  return done.flatMap(({ created_at, credit_balance_before, credit_balance_after }) => {
    const at_ms = new Date(created_at).getTime();
    return [
      { at: new Date(at_ms - 1).toISOString(), value: credit_balance_before },
      { at: new Date(at_ms).toISOString(), value: credit_balance_after },
    ];
  });
}

type CreditLot = Pick<TransactionRecord, 'expiry_date' | 'created_at'>;

/** Lots by the instant at which they expire; those that never expire come last. */
export function sortLots<Each extends CreditLot>(lots: readonly Each[]): Each[] {
  const toSortKey = ({ expiry_date, created_at }: CreditLot) => `${expiry_date ?? '9999'} ${created_at}`;
  return lots.toSorted((left, right) => (toSortKey(left) < toSortKey(right) ? -1 : 1));
}

/** Whole days until a lot expires; null if it never does. */
export function countDaysLeft(expiry_date: string | null | undefined, now_ms: number): number | null {
  return expiry_date ? Math.ceil((new Date(expiry_date).getTime() - now_ms) / DAY_MS) : null;
}

/** Reasons for which the service writes the description. It only repeats the reason, in English. */
const SERVICE_REASONS: ReadonlySet<string> = new Set([
  'CREDIT_EXPIRED',
  'INVOICE_PAYMENT',
  'INVOICE_VOID_REFUND',
  'WALLET_TERMINATION',
]);

/** The description that a user wrote; null if there is none. */
export function findOwnDescription({
  transaction_reason,
  description,
}: Pick<TransactionRecord, 'transaction_reason' | 'description'>): string | null {
  return description && !SERVICE_REASONS.has(transaction_reason) ? description : null;
}
