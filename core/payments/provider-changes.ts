/**
 * Changes of a sent invoice at the provider that are no payments: another total, and credits given at the provider
 * (docs/integrations/README.md, "Reading an invoice"). This service only reports them, because only a person knows their reason.
 */
import { Decimal, sumDecimals } from '../foundation/decimal.ts';
import type { Invoice } from '../invoicing/invoice/record.ts';
import type { ReportedCredit, ReportedInvoice } from './provider-payments.ts';

/** A credit note of the invoice that was sent or linked. */
export type SentCredit = {
  readonly credit_note_id: string;
  readonly provider_credit_id: string;
  /** Amount by which the credit note lowers its invoice at the provider; null if the amount is not compared. */
  readonly amount: string | null;
};

type ChangesInput = {
  readonly invoice: Pick<Invoice, 'invoice_status' | 'currency'>;
  /** Total with which the invoice was sent; null if it was linked by hand. */
  readonly sent_total: string | null;
  readonly sent_credits: readonly SentCredit[];
  /** Whether a credit note of the invoice is being sent. A reported unknown credit may then be this credit note. */
  readonly is_crediting: boolean;
  readonly provider_type: string;
  readonly reported: ReportedInvoice;
};

type PlannedChanges = {
  /** Differences that a person has to resolve. */
  readonly differences: readonly string[];
  /** Whether the invoice must be read again, because a reported credit may be one whose id is not stored yet. */
  readonly is_undecided: boolean;
};

export function planChanges(input: ChangesInput): PlannedChanges {
  const { invoice, reported, is_crediting } = input;
  const isClosed = reported.invoice_status === 'draft' || reported.invoice_status === 'void';
  if (invoice.invoice_status !== 'FINALIZED' || isClosed) return { differences: [], is_undecided: false };
  const { credits = [] } = reported;
  const unknown = credits.filter((credit) => isUnknown(credit, input));
  const is_undecided = is_crediting && unknown.length > 0;
  const credited = unknown.length === 0 || is_undecided ? [] : [describeCredits(input, { credits, unknown })];
  return { differences: [...describeTotal(input), ...describeSentCredits(input), ...credited], is_undecided };
}

/** Whether this service does not know the credit. A credit of 0 is no difference: all of it was reported as refunds of payments. */
function isUnknown(
  { provider_credit_id, reported_credit_note_id, amount }: ReportedCredit,
  { sent_credits }: ChangesInput,
): boolean {
  const isSent = sent_credits.some((sent) => sent.provider_credit_id === provider_credit_id);
  return !reported_credit_note_id && !isSent && new Decimal(amount).gt(0);
}

/** Describes sent credit notes that have another amount at the provider, or no longer lower the invoice there. */
function describeSentCredits({ sent_credits, reported, provider_type }: ChangesInput): string[] {
  const { credits = [], currency } = reported;
  return sent_credits.flatMap(({ credit_note_id, provider_credit_id, amount }) => {
    if (amount === null) return [];
    const there = sumCredits(credits.filter((credit) => credit.provider_credit_id === provider_credit_id));
    if (there.eq(amount)) return [];
    return [
      `credit note ${credit_note_id} of ${amount} ${currency} is ${there.toFixed()} at ${provider_type} (${provider_credit_id})`,
    ];
  });
}

type Credits = { readonly credits: readonly ReportedCredit[]; readonly unknown: readonly ReportedCredit[] };

function describeCredits(
  { reported: { currency }, provider_type }: ChangesInput,
  { credits, unknown }: Credits,
): string {
  const there = sumCredits(credits);
  const here = there.minus(sumCredits(unknown));
  const named = unknown.map(({ provider_credit_id: id, amount }) => `${id} of ${new Decimal(amount).toFixed()}`);
  return `${there.toFixed()} ${currency} of the invoice is credited at ${provider_type}, but ${here.toFixed()} from here: ${named.join(', ')} is not known here`;
}

function sumCredits(credits: readonly ReportedCredit[]): Decimal {
  return sumDecimals(credits.map(({ amount }) => new Decimal(amount)));
}

function describeTotal({ invoice, sent_total, reported, provider_type }: ChangesInput): string[] {
  if (sent_total === null) return [];
  const { total, currency } = reported;
  if (currency === invoice.currency && new Decimal(total).eq(sent_total)) return [];
  const there = `${new Decimal(total).toFixed()} ${currency} at ${provider_type}`;
  return [
    `the total of the invoice is ${there}, but ${new Decimal(sent_total).toFixed()} ${invoice.currency} was sent`,
  ];
}
