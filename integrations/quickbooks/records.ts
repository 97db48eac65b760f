/** Fields of QuickBooks records that this service reads. Amounts are texts (exact-json.ts). */
import { Decimal } from '../../core/foundation/decimal.ts';

export type QuickBooksRecord = { readonly Id: string; readonly SyncToken: string };
type Reference = { readonly value: string };
type LinkedTxn = { readonly TxnId: string; readonly TxnType: string };

type SalesLine = {
  readonly DetailType: string;
  readonly Amount?: string;
};

type SalesTransaction = QuickBooksRecord & {
  readonly CustomerRef?: Reference;
  /** Absent in a company with one currency. */
  readonly CurrencyRef?: Reference;
  readonly TotalAmt: string;
  readonly TxnDate?: string;
  readonly PrivateNote?: string;
  readonly LinkedTxn?: readonly LinkedTxn[];
};
export type QuickBooksInvoice = SalesTransaction & { readonly Balance: string; readonly Line: readonly SalesLine[] };
type QuickBooksCreditMemo = SalesTransaction & {
  /** Amount that is not applied to an invoice yet. */
  readonly RemainingCredit?: string;
  readonly Line: readonly SalesLine[];
};
export type QuickBooksPayment = SalesTransaction & {
  readonly UnappliedAmt?: string;
  readonly Line?: readonly { readonly Amount: string; readonly LinkedTxn?: readonly LinkedTxn[] }[];
};

export type QuickBooksRecords = {
  readonly Customer: QuickBooksRecord & {
    readonly DisplayName: string;
    readonly Notes?: string;
    readonly Active?: boolean;
  };
  readonly Item: QuickBooksRecord & { readonly Name: string; readonly Type: string };
  readonly Invoice: QuickBooksInvoice;
  readonly Payment: QuickBooksPayment;
  readonly CreditMemo: QuickBooksCreditMemo;
  readonly CompanyInfo: QuickBooksRecord & { readonly CompanyName?: string; readonly Country?: string };
  readonly Preferences: QuickBooksRecord & { readonly CurrencyPrefs?: { readonly HomeCurrency?: Reference } };
};

/** Whether the record is void: QuickBooks then sets all its amounts to 0 and inserts the word "Voided" at the start of its note. */
export function isVoided({ TotalAmt, PrivateNote = '' }: Pick<SalesTransaction, 'TotalAmt' | 'PrivateNote'>): boolean {
  return new Decimal(TotalAmt).isZero() && /^voided\b/i.test(PrivateNote);
}
