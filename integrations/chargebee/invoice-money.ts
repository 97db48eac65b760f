/**
 * Money of an invoice at Chargebee: its payments, credit notes and refunds (apidocs.chargebee.com, "Transactions",
 * "Credit notes"). A refund belongs to a credit note, which the payment does not name.
 */
import type { ReportedRefund } from '../../core/payments/provider-payments.ts';
import type { RefundOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { fromCents } from './amounts.ts';
import type { ChargebeeClient } from './client.ts';
import type { ChargebeeCreditNote, ChargebeeInvoice, ChargebeeTransaction, TransactionStatus } from './records.ts';

/** States of a transaction, as those of a payment or refund. */
const STATES: Readonly<Record<TransactionStatus, 'succeeded' | 'pending' | 'failed'>> = {
  success: 'succeeded',
  in_progress: 'pending',
  // Chargebee does not know the result; a person reconciles it there.
  needs_attention: 'pending',
  voided: 'failed',
  failure: 'failed',
  timeout: 'failed',
  late_failure: 'failed',
};

type PaymentState = (typeof STATES)[TransactionStatus];

/** Refuses an unknown status, because it may mean that money moved; a person has to decide. */
export function toState({ id, status }: Pick<ChargebeeTransaction, 'id' | 'status'>): PaymentState {
  const known = status !== undefined && Object.hasOwn(STATES, status) ? STATES[status] : undefined;
  if (known === undefined)
    throw new ProviderError('person', `${id} has the status ${status} at Chargebee`, { is_of_record: true });
  return known;
}

export function isOutside({ gateway }: Pick<ChargebeeTransaction, 'gateway'>): boolean {
  return gateway === 'not_applicable';
}

export async function loadPayments(
  client: ChargebeeClient,
  { linked_payments = [] }: ChargebeeInvoice,
): Promise<ChargebeeTransaction[]> {
  return await loadTransactions(
    client,
    linked_payments.map(({ txn_id }) => txn_id),
  );
}

/** Length of the list of ids in one request, so that its address stays short. */
const IDS_MAX = 50;

async function loadTransactions(client: ChargebeeClient, ids: readonly string[]): Promise<ChargebeeTransaction[]> {
  const wanted = [...new Set(ids)];
  const found: ChargebeeTransaction[] = [];
  for (let from = 0; from < wanted.length; from += IDS_MAX) {
    const id = { in: JSON.stringify(wanted.slice(from, from + IDS_MAX)) };
    for await (const transaction of client.list('transaction', { id })) found.push(transaction);
  }
  return found;
}

export async function listCreditNotes(client: ChargebeeClient, invoice_id: string): Promise<ChargebeeCreditNote[]> {
  const notes: ChargebeeCreditNote[] = [];
  for await (const note of client.list('credit_note', { reference_invoice_id: { is: invoice_id } }))
    if (note.deleted !== true) notes.push(note);
  return notes;
}

/** A refund that Chargebee made, with the payment that it refunds. */
export type LinkedRefund = {
  readonly payment_id: string;
  readonly credit_note_id: string;
  readonly refund: ReportedRefund;
};

const REFUND_NOTE = /^Refund (\S+)$/m;

export function toRefundNote(refund_id: string): string {
  return `Refund ${refund_id}`;
}

/** Lists the refunds of the credit notes. Refunds of money outside Chargebee are left out. */
export async function listRefunds(
  client: ChargebeeClient,
  notes: readonly ChargebeeCreditNote[],
): Promise<LinkedRefund[]> {
  const linked = notes.flatMap(({ linked_refunds = [], ...note }) => linked_refunds.map((one) => ({ ...one, note })));
  const transactions = await loadTransactions(
    client,
    linked.map(({ txn_id }) => txn_id),
  );
  return linked.flatMap(({ txn_id, applied_amount, note }) => {
    const transaction = transactions.find(({ id }) => id === txn_id);
    if (transaction === undefined || isOutside(transaction)) return [];
    const refund_status = toState(transaction);
    const refund = {
      provider_refund_id: txn_id,
      amount: fromCents(applied_amount, note.currency_code),
      refund_status,
      error: refund_status === 'failed' ? describeFailure(transaction) : null,
      refund_id: REFUND_NOTE.exec((note.notes ?? []).join('\n'))?.[1] ?? null,
    };
    return [{ payment_id: transaction.refunded_txn_id ?? '', credit_note_id: note.id, refund }];
  });
}

export function describeFailure({ error_code, error_text, status }: ChargebeeTransaction): string {
  return `${error_code || status}: ${error_text || 'the gateway names no reason'}`;
}

export function toRefundOutcome({
  provider_refund_id: gateway_refund_id,
  refund_status,
  error,
}: ReportedRefund): RefundOutcome {
  if (refund_status !== 'failed') return { outcome: refund_status, gateway_refund_id };
  return { outcome: 'failed', error: error ?? `Chargebee: the refund ${gateway_refund_id} has failed` };
}
