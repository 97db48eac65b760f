/**
 * Payments and credit notes that this service pushed to a provider. The provider includes them when it reports the payments and credits of
 * an invoice, so they must not be recorded again.
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { SentCredit } from '../../../core/payments/provider-changes.ts';
import { isOverpaymentKey } from '../../../core/payments/record.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { findBeingSent } from './mappings.ts';

type SentPayments = {
  /** Ids, at the provider, of payments that were pushed or linked by hand. */
  readonly sent_ids: ReadonlySet<string>;
  /** Ids at the provider, by payment, of completed pushes. A payment linked by hand is omitted: it may have another id there. */
  readonly pushed_ids: ReadonlyMap<string, string>;
  /** Refunded overpaid amounts, by payment. */
  readonly overpaid: ReadonlyMap<string, Decimal>;
  /** True if the push of one of these payments has begun and its outcome is unknown. */
  readonly is_sending: boolean;
};

export async function loadSentPayments(
  transaction: Transaction,
  connection: ConnectionModel,
  { payment_ids }: { payment_ids: readonly string[] },
): Promise<SentPayments> {
  const mappings = await IntegrationMappingModel.in(connection, transaction)
    .where({ connection_id: connection.id, entity_type: 'payment' })
    .whereNot('mapping_state', 'gone')
    .whereIn('entity_id', [...payment_ids]);
  const ids = mappings.flatMap(({ provider_entity_id }) => provider_entity_id ?? []);
  const pushed = mappings.filter(({ mapping_state, key_created_at }) => mapping_state === 'made' && key_created_at);
  const pushed_ids = new Map(pushed.map(({ entity_id, provider_entity_id }) => [entity_id, provider_entity_id!]));
  const is_sending = await isBeingSent(transaction, connection, { entity_type: 'payment', entity_ids: payment_ids });
  const overpaid = await sumOverpaid(transaction, connection, [...pushed_ids.keys()]);
  return { sent_ids: new Set(ids), pushed_ids, overpaid, is_sending };
}

async function isBeingSent(
  transaction: Transaction,
  connection: ConnectionModel,
  { entity_type, entity_ids }: { entity_type: 'payment' | 'credit_note'; entity_ids: readonly string[] },
): Promise<boolean> {
  const [sending] = await findBeingSent(transaction, connection)
    .where({ entity_type })
    .whereIn('entity_id', [...entity_ids])
    .limit(1);
  return sending !== undefined;
}

/** Sums the successful refunds of overpaid amounts, by payment. These amounts are not in any invoice's paid amount. */
async function sumOverpaid(
  transaction: Transaction,
  connection: ConnectionModel,
  payment_ids: readonly string[],
): Promise<ReadonlyMap<string, Decimal>> {
  const refunds = await PaymentRefundModel.in(connection, transaction)
    .whereIn('payment_id', [...payment_ids])
    .where({ refund_status: 'succeeded' });
  const overpaid = refunds.filter(({ idempotency_key }) => isOverpaymentKey(idempotency_key));
  const byPayment = groupBy(overpaid, ({ payment_id }) => payment_id);
  return new Map(
    Array.from(byPayment, ([id, some]) => [id, sumDecimals(some.map(({ amount }) => new Decimal(amount)))]),
  );
}

type SentCredits = {
  /** Credit notes that were pushed to the provider, including unlinked ones, because the provider still has them. */
  readonly sent_credits: readonly SentCredit[];
  /** True if the push of one of these credit notes has begun and its outcome is unknown. */
  readonly is_crediting: boolean;
};

export async function loadSentCredits(
  transaction: Transaction,
  connection: ConnectionModel,
  { invoice_id, now }: { invoice_id: string; now: Date },
): Promise<SentCredits> {
  const notes = await CreditNoteModel.in(connection, transaction).where({ invoice_id });
  const entity_ids = notes.map(({ id }) => id);
  const mappings = await IntegrationMappingModel.in(connection, transaction)
    .where({ connection_id: connection.id, entity_type: 'credit_note' })
    .whereIn('entity_id', entity_ids);
  const sent_credits = mappings.flatMap((mapping) => {
    const { entity_id: credit_note_id, provider_entity_id: provider_credit_id } = mapping;
    if (provider_credit_id === null) return [];
    const note = notes.find(({ id }) => id === credit_note_id)!;
    return [{ credit_note_id, provider_credit_id, amount: computeLowered(note, mapping, now) }];
  });
  const is_crediting = await isBeingSent(transaction, connection, { entity_type: 'credit_note', entity_ids });
  return { sent_credits, is_crediting };
}

/**
 * Amount by which the provider must have lowered the invoice for a credit note. Null if the note is unlinked, is not in force or lowers no
 * invoice. Also null within an hour of the push, because the invoice may have been read at the provider before it.
 */
function computeLowered(
  { credit_note_type, credit_note_status, total_amount, total_prepaid_credits_returned }: CreditNoteModel,
  { mapping_state, updated_at }: IntegrationMappingModel,
  now: Date,
): string | null {
  const isLowering = credit_note_type === 'ADJUSTMENT' && credit_note_status === 'FINALIZED';
  const isRecent = now.getTime() - toInstant(updated_at) < HOUR_MS;
  if (!isLowering || mapping_state !== 'made' || isRecent) return null;
  return new Decimal(total_amount).minus(total_prepaid_credits_returned).toFixed();
}
