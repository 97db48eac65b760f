/**
 * Stops the provider's copy of an invoice from requesting money that was received here and that no pushed payment or credit note covers:
 * the invoice was marked as paid by hand, or the provider has no such records (docs/integrations/README.md, "Money after the invoice").
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { SentInvoice } from '../../../core/platform/integration/pushed-lines.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { findAccountCapability } from '../../foundation/connections/call-account.ts';
import { withClaim } from '../../foundation/connections/push-claims.ts';
import { ensureProviderCustomer, loadPushKey, type PushTarget } from '../../foundation/connections/push-record.ts';
import { attachCharges } from './attach-charges.ts';
import { listReceivedPayments } from './sent-invoice.ts';

export async function settleInvoice(
  stores: Postgres,
  invoice: InvoiceModel,
  mapping: IntegrationMappingModel,
  target: PushTarget,
): Promise<void> {
  const { id, provider_entity_id, sent_invoice } = mapping;
  // If the invoice was linked by hand, the amount at the provider is unknown.
  if (sent_invoice === null) return;
  const payments = await listReceivedPayments(stores.postgres, invoice);
  await attachCharges({ mapping, payments }, target);
  const there = await computeRemainingThere(stores, invoice, { sent_invoice, payments, target });
  if (there.eq(invoice.amount_remaining)) return;
  const isSettled = new Decimal(invoice.amount_remaining).isZero();
  const { exchanges } = findAccountCapability(target.connection);
  const receivesPayments = exchanges.includes('payment');
  const by_hand = new Decimal(invoice.amount_paid).minus(sent_invoice.amount_paid);
  const isByHand = payments.length === 0 && (exchanges.includes('credit_note') || by_hand.gte(there));
  if (isSettled && receivesPayments && isByHand)
    return settleByHand(stores, invoice, { mapping, amount: by_hand, target });
  // The copy can be voided if only a credit note that the provider does not receive has settled the invoice, or if nothing was paid on the
  // copy. A payment with this connection_id was made on the copy; a separate charge at the provider has no connection_id.
  const isVoidable = receivesPayments
    ? !exchanges.includes('credit_note') &&
      by_hand.lte(0) &&
      payments.every(({ id }) => sent_invoice.contained_ids.includes(id))
    : payments.every(({ connection_id }) => connection_id !== target.connection.id);
  if (!isSettled || !isVoidable)
    throw new ProviderError(
      'person',
      `${invoice.amount_remaining} ${invoice.currency} of invoice ${invoice.id} remains to be paid here, but ${there.toFixed()} at the provider: correct it there`,
    );
  await target.call(async (account) => account.voidInvoice?.(provider_entity_id!, `${id}:void`));
}

type KnownMoney = {
  readonly sent_invoice: SentInvoice;
  readonly payments: readonly PaymentModel[];
  readonly target: PushTarget;
};

/** Amount that remains to be paid at the provider after all payments and credit notes that the provider receives. */
async function computeRemainingThere(
  { postgres }: Postgres,
  invoice: InvoiceModel,
  { sent_invoice, payments, target: { connection } }: KnownMoney,
): Promise<Decimal> {
  const { exchanges } = findAccountCapability(connection);
  const isLater = ({ id }: { readonly id: string }) => !sent_invoice.contained_ids.includes(id);
  const known = payments.filter(
    ({ connection_id }) => exchanges.includes('payment') || connection_id === connection.id,
  );
  const notes = exchanges.includes('credit_note')
    ? await CreditNoteModel.in(invoice, postgres).where({
        invoice_id: invoice.id,
        credit_note_status: 'FINALIZED',
        credit_note_type: 'ADJUSTMENT',
      })
    : [];
  const lowered = sumDecimals([
    ...known.filter(isLater).map((payment) => new Decimal(payment.amount)),
    ...notes.filter(isLater).map((note) => new Decimal(note.total_amount).minus(note.total_prepaid_credits_returned)),
  ]);
  return Decimal.max(0, new Decimal(sent_invoice.amount_remaining).minus(lowered));
}

type SettledCounterpart = {
  readonly mapping: IntegrationMappingModel;
  readonly amount: Decimal;
  readonly target: PushTarget;
};

/**
 * Pushes the amount that was marked as paid by hand, because it has no payment record. The amount may change until the invoice is settled,
 * so partial amounts are not pushed.
 */
async function settleByHand(
  stores: Postgres,
  invoice: InvoiceModel,
  { mapping, amount, target }: SettledCounterpart,
): Promise<void> {
  if (amount.lte(0)) return;
  const provider_customer_id = await ensureProviderCustomer(stores, invoice, invoice.customer_id, target);
  const first = await loadPushKey(stores, mapping);
  const payment = {
    ...first,
    key: `${mapping.id}:settled`,
    // The key of the mapping may be older than this payment, so its age proves nothing: the provider is searched before
    // the payment is created.
    is_key_renewed: true,
    payment_id: invoice.id,
    provider_customer_id,
    provider_invoice_id: mapping.provider_entity_id!,
    amount: amount.toFixed(),
    currency: invoice.currency,
    paid_at: invoice.paid_at ?? target.author.now.toISOString(),
    reference: invoice.invoice_number ?? invoice.id,
  };
  await withClaim(stores, mapping, () => target.call((account) => account.pushPayment!(payment)));
}
