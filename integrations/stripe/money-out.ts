/**
 * Pushes payments and credit notes of an invoice whose money was received elsewhere. A payment becomes a payment record
 * that is attached to the invoice (docs.stripe.com/api/payment-record, docs.stripe.com/api/invoices/attach_payment):
 * unlike `paid_out_of_band` it has an amount, so it can pay a part. A credit note first lowers the remaining amount
 * (docs.stripe.com/api/credit_notes).
 */
import type { Stripe } from 'stripe';
import type {
  AttachedPayment,
  ProviderRecord,
  PushedCreditNote,
  PushedPayment,
  SearchedCreditNote,
} from '../account.ts';
import type { RequestedPayment } from '../account-payments.ts';
import { sumMinorUnits } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';
import { fromMinorUnits, toMinorUnits } from './amounts.ts';
import { isRefused } from './errors.ts';
import { toUnixSeconds } from './lines.ts';
import { RECORDS_EXPANDED, toReportedPaymentId } from './pulled-invoice.ts';
import { changeOnce, findByMetadata, sendOnce, toCreatedSince } from './send-once.ts';

const PAGE = 100;

export async function pushStripePayment(stripe: Stripe, payment: PushedPayment): Promise<ProviderRecord> {
  const attached = await findAttached(stripe, payment);
  if (attached !== null) return attached;
  const invoice = await stripe.invoices.retrieve(payment.provider_invoice_id);
  const value = Math.min(toMinorUnits(payment.amount, payment.currency), invoice.amount_remaining);
  if (value <= 0 || invoice.status === 'void')
    throw new ProviderError(
      'person',
      `the invoice ${invoice.id} is ${invoice.status} at Stripe, so the payment of ${payment.amount} ${payment.currency} is not counted there`,
    );
  const record = await sendOnce({
    ...payment,
    key: `${payment.key}:record`,
    find: () => findRecord(stripe, payment),
    send: (options) => stripe.paymentRecords.reportPayment(toPaymentRecord(payment, value), options),
  });
  if (record.amount.value > invoice.amount_remaining)
    throw new ProviderError(
      'person',
      `less than the payment record ${record.id} remains of the invoice ${invoice.id} at Stripe: ${fromMinorUnits(invoice.amount_remaining, invoice.currency)}`,
    );
  await changeOnce({
    ...payment,
    key: `${payment.key}:attach`,
    find: () => findAttached(stripe, payment),
    send: async (options) => {
      await stripe.invoices.attachPayment(invoice.id, { payment_record: record.id }, options);
      return { provider_entity_id: record.id, url: null };
    },
  });
  return { provider_entity_id: record.id, url: null };
}

/**
 * Builds a payment record with the part of the payment that is applied to the invoice, because Stripe would credit the rest to the
 * customer's balance.
 */
function toPaymentRecord(payment: PushedPayment, value: number): Stripe.PaymentRecordReportPaymentParams {
  const paid_at = toUnixSeconds(payment.paid_at);
  return {
    amount_requested: { currency: payment.currency, value },
    customer_details: { customer: payment.provider_customer_id },
    initiated_at: paid_at,
    outcome: 'guaranteed',
    guaranteed: { guaranteed_at: paid_at },
    payment_method_details: { type: 'custom', custom: { display_name: 'Outside Stripe' } },
    processor_details: { type: 'custom', custom: { payment_reference: payment.reference } },
    metadata: { farthing_payment_id: payment.payment_id },
  };
}

async function findAttached(
  stripe: Stripe,
  { provider_invoice_id, payment_id }: Pick<PushedPayment, 'provider_invoice_id' | 'payment_id'>,
): Promise<ProviderRecord | null> {
  const listed = stripe.invoicePayments.list({ invoice: provider_invoice_id, limit: PAGE, expand: [RECORDS_EXPANDED] });
  for await (const payment of listed) {
    const record = payment.payment.payment_record;
    if (record === undefined || toReportedPaymentId(payment) !== payment_id) continue;
    return { provider_entity_id: typeof record === 'string' ? record : record.id, url: null };
  }
  return null;
}

/** Finds the record of an attempt that ended before it was attached. */
async function findRecord(
  stripe: Stripe,
  { payment_id, key_created_at }: PushedPayment,
): Promise<Stripe.PaymentRecord | null> {
  return await findByMetadata(['farthing_payment_id', payment_id], {
    list: () => stripe.paymentRecords.list({ limit: PAGE, created_after: toCreatedSince(key_created_at) }),
    search: null,
    accepts: () => true,
  });
}

/**
 * Attaches a payment to the invoice, unless the payment or its payment record (`payInvoice`) is attached already. The request needs no
 * idempotency key, because Stripe refuses to attach a payment twice, even concurrently.
 */
export async function attachStripePayment(stripe: Stripe, payment: AttachedPayment): Promise<void> {
  const { provider_invoice_id: invoice, gateway_payment_id: payment_intent } = payment;
  const isThere = async () =>
    (await isAttached(stripe, invoice, payment_intent)) || (await findAttached(stripe, payment)) !== null;
  if (await isThere()) return;
  await checkFits(stripe, { invoice, payment_intent });
  try {
    await stripe.invoices.attachPayment(invoice, { payment_intent });
  } catch (error) {
    if (!isRefused(error) || !(await isThere())) throw error;
  }
}

/** Refuses a payment that is greater than the rest of the open invoice: Stripe would credit the surplus to the customer's balance. */
async function checkFits(
  stripe: Stripe,
  { invoice, payment_intent }: { readonly invoice: string; readonly payment_intent: string },
): Promise<void> {
  const { status, amount_remaining, currency } = await stripe.invoices.retrieve(invoice);
  const { amount_received } = await stripe.paymentIntents.retrieve(payment_intent);
  if (status !== 'open' || amount_received <= amount_remaining) return;
  throw new ProviderError(
    'person',
    `${fromMinorUnits(amount_received, currency)} ${currency} was received by ${payment_intent}, but ${fromMinorUnits(amount_remaining, currency)} of the invoice ${invoice} remains at Stripe: attach a part there`,
  );
}

type ReceivedPayment = {
  readonly intent: Stripe.PaymentIntent;
  readonly payment: RequestedPayment;
  readonly provider_invoice_id: string;
};

/**
 * Applies a received payment to the invoice. If less than the payment remains due, e.g. after a credit note, a payment record of the
 * remaining amount pays it. Otherwise Stripe would credit the surplus to the customer's balance, although it is refunded or credited here.
 */
export async function payInvoice(
  stripe: Stripe,
  { intent, payment, provider_invoice_id }: ReceivedPayment,
): Promise<void> {
  const invoice = await stripe.invoices.retrieve(provider_invoice_id);
  if (invoice.status !== 'open' || (await isAttached(stripe, invoice.id, intent.id))) return;
  if (intent.amount_received <= invoice.amount_remaining) {
    await stripe.invoices.attachPayment(invoice.id, { payment_intent: intent.id });
    return;
  }
  await pushStripePayment(stripe, {
    ...payment,
    key_created_at: payment.requested_at,
    is_key_renewed: false,
    provider_invoice_id,
    amount: fromMinorUnits(intent.amount_received, intent.currency),
    currency: intent.currency,
    paid_at: new Date(intent.created * 1_000).toISOString(),
    reference: intent.id,
  });
}

async function isAttached(stripe: Stripe, invoice: string, payment_intent: string): Promise<boolean> {
  for await (const { payment } of stripe.invoicePayments.list({ invoice, limit: PAGE })) {
    const paid = payment.payment_intent;
    if (paid !== undefined && (typeof paid === 'string' ? paid : paid.id) === payment_intent) return true;
  }
  return false;
}

/** Reasons of credit notes at Stripe, by the reasons of this service (docs.stripe.com/api/credit_notes/create). */
const REASONS: Readonly<Record<string, Stripe.CreditNoteCreateParams.Reason>> = {
  DUPLICATE: 'duplicate',
  FRAUDULENT: 'fraudulent',
  ORDER_CHANGE: 'order_change',
  UNSATISFACTORY: 'product_unsatisfactory',
};

export async function pushStripeCreditNote(stripe: Stripe, note: PushedCreditNote): Promise<ProviderRecord> {
  const find = () => findCreditNote(stripe, note);
  const earlier = await find();
  if (earlier !== null) return checkNote(earlier, note);
  const invoice = await stripe.invoices.retrieve(note.provider_invoice_id);
  const params = toStripeCreditNote(invoice, note);
  const created = await sendOnce({ ...note, find, send: (options) => stripe.creditNotes.create(params, options) });
  return checkNote(created, note);
}

/** Finds the credit note of an earlier attempt in the full list, because an invoice has few notes. */
async function findCreditNote(
  stripe: Stripe,
  { provider_invoice_id, credit_note_id }: SearchedCreditNote,
): Promise<Stripe.CreditNote | null> {
  return await findByMetadata(['farthing_credit_note_id', credit_note_id], {
    list: () => stripe.creditNotes.list({ invoice: provider_invoice_id, limit: PAGE }),
    search: null,
    accepts: () => true,
  });
}

export async function findStripeCreditNote(stripe: Stripe, note: SearchedCreditNote): Promise<ProviderRecord | null> {
  const found = await findCreditNote(stripe, note);
  return found?.status === 'issued' ? { provider_entity_id: found.id, url: null } : null;
}

/** Builds a credit note. Its sums are checked first, because it takes effect at its creation. */
function toStripeCreditNote(invoice: Stripe.Invoice, note: PushedCreditNote): Stripe.CreditNoteCreateParams {
  const { currency, effect } = note;
  const total = toMinorUnits(note.total, currency);
  const lines = note.lines
    .map(({ description, amount }) => ({ description, unit_amount: toMinorUnits(amount, currency) }))
    .filter(({ unit_amount }) => unit_amount !== 0);
  const sum = sumMinorUnits(lines.map(({ unit_amount }) => unit_amount)).toNumber();
  if (sum !== total)
    throw new ProviderError(
      'person',
      `the lines of ${note.credit_note_number} add up to ${fromMinorUnits(sum, currency)}, its total is ${note.total}`,
    );
  const remaining = invoice.amount_remaining;
  if (effect === 'lowers_remaining' ? total > remaining : remaining > 0)
    throw new ProviderError(
      'person',
      `the credit note ${note.credit_note_number} over ${note.total} ${currency} does not fit the invoice ${invoice.id}, of which ${fromMinorUnits(remaining, currency)} remains at Stripe`,
    );
  return {
    invoice: note.provider_invoice_id,
    lines: lines.map((line) => ({ ...line, type: 'custom_line_item', quantity: 1 })),
    ...(effect === 'refunded_elsewhere' ? { out_of_band_amount: total } : {}),
    ...(REASONS[note.reason] ? { reason: REASONS[note.reason]! } : {}),
    email_type: 'none',
    metadata: { farthing_credit_note_id: note.credit_note_id, farthing_credit_note_number: note.credit_note_number },
  };
}

function checkNote(there: Stripe.CreditNote, { total, currency, credit_note_id }: PushedCreditNote): ProviderRecord {
  if (there.total === toMinorUnits(total, currency)) return { provider_entity_id: there.id, url: null };
  throw new ProviderError(
    'person',
    `the total of ${credit_note_id} is ${total} ${currency}, but ${fromMinorUnits(there.total, there.currency)} at Stripe (${there.id})`,
  );
}

export async function voidStripeCreditNote(stripe: Stripe, id: string, key: string): Promise<void> {
  const readVoid = async () => {
    const note = await stripe.creditNotes.retrieve(id);
    return note.status === 'void' ? note : null;
  };
  if ((await readVoid()) !== null) return;
  const send = (options: { idempotencyKey: string }) => stripe.creditNotes.voidCreditNote(id, {}, options);
  await changeOnce({ key, key_age_seconds: 0, is_key_renewed: false, find: readVoid, send });
}
