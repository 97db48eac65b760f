/**
 * Compares each invoice of an environment with its copy in Stripe's fake, and the payments, refunds and credit notes on
 * both sides.
 */

import type { Services } from '../../api/http/services.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { PaymentStatus } from '../../core/invoicing/invoice/record.ts';
import { RECEIVED } from '../../core/payments/moves.ts';
import type { StripeFake } from './providers/stripe-fake.ts';
import type { InvoiceRecord, PaymentRecord, StripeRecord } from './providers/stripe-fake-records.ts';

/** Columns of invoices, payments, refunds and credit notes that are read; each table has some of them. */
export type Row = Readonly<
  Record<'id' | 'invoice_id' | 'payment_id' | 'destination_id' | 'invoice_status' | 'refund_status', string> &
    Record<'amount' | 'amount_paid' | 'amount_remaining' | 'refunded_amount', string> &
    Record<'gateway_payment_id' | 'payment_gateway' | 'error_message', string | null> & {
      payment_status: PaymentStatus;
    }
>;
type MappingRow = {
  readonly entity_id: string;
  readonly mapping_state: string;
  readonly attention_reason: string | null;
  readonly push_error: string | null;
  readonly sent_invoice: { readonly amount_paid: string; readonly amount_remaining: string };
};
type Records = Record<'invoices' | 'payments' | 'refunds' | 'notes', Row[]> & { mappings: MappingRow[] };

export type Difference = {
  readonly invoice_id: string;
  readonly what: string;
  /**
   * Recorded reasons that may explain the difference: `attention_reason` and `push_error` of the mappings of the invoice, its payments and
   * its credit notes, and `error_message` of its payments.
   */
  readonly reasons: readonly string[];
};

export async function listDifferences(services: Services, fake: StripeFake): Promise<Difference[]> {
  const records = await loadRecords(services);
  return records.invoices.flatMap((invoice) => {
    const reasons = [...listMappingReasons(records, invoice['id']), ...listPaymentErrors(records, invoice['id'])];
    return compareInvoice(records, invoice, fake).map((what) => ({ invoice_id: invoice['id'], what, reasons }));
  });
}

/** All reasons that mappings state for a person. */
export async function listReasons(services: Services): Promise<string[]> {
  const records = await loadRecords(services);
  return records.invoices.flatMap(({ id }) => listMappingReasons(records, id));
}

async function loadRecords({ postgres }: Services): Promise<Records> {
  return {
    invoices: await postgres('invoices'),
    payments: await postgres('payments'),
    refunds: await postgres('payment_refunds'),
    notes: await postgres('credit_notes'),
    mappings: await postgres('integration_mappings').whereNot({ mapping_state: 'gone' }),
  };
}

/** The mappings of the invoice, of its payments and of its credit notes may name reasons, several separated by a semicolon. */
function listMappingReasons({ payments, notes, mappings }: Records, invoice_id: string): string[] {
  const money = [
    ...payments.filter((one) => one['destination_id'] === invoice_id),
    ...notes.filter((one) => one['invoice_id'] === invoice_id),
  ];
  const ids = new Set([invoice_id, ...money.map(({ id }) => id)]);
  return mappings
    .filter(({ entity_id }) => ids.has(entity_id))
    .flatMap(({ attention_reason, push_error }) => [...(attention_reason?.split('; ') ?? []), push_error])
    .filter((reason) => reason !== null);
}

function listPaymentErrors({ payments }: Records, invoice_id: string): string[] {
  const paying = payments.filter((one) => one['destination_id'] === invoice_id);
  return paying.map(({ error_message }) => error_message).filter(Boolean) as string[];
}

function compareInvoice(records: Records, invoice: Row, fake: StripeFake): string[] {
  const copies = fake.listInvoices().filter(({ metadata }) => metadata['farthing_invoice_id'] === invoice['id']);
  const asking = copies.filter(({ status }) => status !== 'void');
  const mapping = records.mappings.find(({ entity_id }) => entity_id === invoice['id']);
  const remaining = invoice['invoice_status'] === 'FINALIZED' ? toCents(invoice['amount_remaining']) : 0;
  const found = compareMoney(records, { invoice, copies, fake });
  if (asking.length > 1) found.push(`${asking.length} copies`);
  const [copy] = asking;
  if (copy === undefined) return remaining > 0 ? [...found, `${remaining} remains, and it is not there`] : found;
  if (mapping?.['mapping_state'] !== 'made') return [...found, `${copy.id} is there without a mapping`];
  const { sent_invoice } = mapping;
  const paid = toCents(invoice['amount_paid']) - toCents(sent_invoice.amount_paid);
  const total = toCents(sent_invoice.amount_remaining);
  const here = describe({ total, paid: Math.min(paid, total), remaining });
  const there = describe({
    total: copy.total,
    paid: Math.min(copy.amount_paid, copy.total),
    remaining: copy.amount_remaining,
  });
  if (here !== there) found.push(`${here} here, ${there} there`);
  const status = remaining > 0 ? 'open' : 'paid';
  if (copy.status !== status) found.push(`${status} here, ${copy.status} there`);
  return found;
}

function describe({ total, paid, remaining }: { total: number; paid: number; remaining: number }): string {
  return `${paid} of ${total} paid, ${remaining} remains`;
}

type Compared = { readonly invoice: Row; readonly copies: readonly InvoiceRecord[]; readonly fake: StripeFake };

/** Compares the money received through Stripe, payments less refunds, with that of the fake. */
function compareMoney({ payments, refunds }: Records, { invoice, copies, fake }: Compared): string[] {
  const paying = new Set(
    copies.flatMap(({ id }) => fake.book.listPayments(id)).map(({ payment }: PaymentRecord) => payment.payment_intent),
  );
  const intents = fake.book
    .list('payment_intent')
    .filter(({ id, metadata }) => paying.has(id) || metadata['farthing_invoice_id'] === invoice['id']);
  const sum = (all: readonly StripeRecord[], field: string) =>
    all.reduce((total, one) => total + Number(one[field]), 0);
  const given = intents.flatMap(({ id }) => fake.book.list('refund').filter((one) => one['payment_intent'] === id));
  const there =
    sum(intents, 'amount_received') -
    sum(
      given.filter(({ status }) => status === 'succeeded'),
      'amount',
    );
  const taken = payments.filter(
    ({ destination_id, gateway_payment_id, payment_gateway, payment_status, refunded_amount }) =>
      destination_id === invoice['id'] &&
      payment_gateway === 'stripe' &&
      /^(pi|cs)_/.test(gateway_payment_id ?? '') &&
      (RECEIVED.includes(payment_status) || Number(refunded_amount) > 0),
  );
  const ids = new Set(taken.map(({ id }) => id));
  const returned = refunds.filter((one) => ids.has(one['payment_id']) && one['refund_status'] === 'succeeded');
  const here = addUp(taken) - addUp(returned);
  return here === there ? [] : [`${here} of money here, ${there} there`];
}

function addUp(rows: readonly Row[]): number {
  return toCents(sumDecimals(rows.map(({ amount }) => new Decimal(amount))).toFixed());
}

function toCents(amount: string): number {
  return new Decimal(amount).times(100).toNumber();
}
