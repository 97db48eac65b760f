/** The operations of the areas credit_note and invoice.* that are about money given back, numbers and dates, on core/. */
import { z } from 'zod';
import { Decimal, ZERO } from '../../core/foundation/decimal.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import { type CreditableLine, computeRefundable } from '../../core/invoicing/credit-note/creditable.ts';
import {
  checkCanVoidNote,
  planCreditedInvoice,
  planUncreditedInvoice,
} from '../../core/invoicing/credit-note/effect.ts';
import { planCreditNote } from '../../core/invoicing/credit-note/plan.ts';
import {
  DEFAULT_INVOICE_NUMBERS,
  formatDocumentNumber,
  NUMBER_FORMATS,
  toNumberToken,
} from '../../core/invoicing/document/number.ts';
import { toDraftKey } from '../../core/invoicing/invoice/own-key.ts';
import { canBecome } from '../../core/invoicing/invoice/payment-status.ts';
import {
  BILLING_REASONS,
  INVOICE_STATUSES,
  type Invoice,
  PAYMENT_STATUSES,
} from '../../core/invoicing/invoice/record.ts';
import { checkVoidable, planVoidedPayment } from '../../core/invoicing/invoice/void.ts';
import { toWholeSetting } from '../../core/platform/setting/record.ts';
import { dueDate } from '../../core/rating/due.ts';

const amount = z.coerce.string();
const NOW = new Date('2026-01-01T00:00:00Z');

const credited = z.object({
  status: z.enum(INVOICE_STATUSES).default('FINALIZED'),
  payment_status: z.enum(PAYMENT_STATUSES).default('PENDING'),
  total: amount.default('0'),
  amount_paid: amount.default('0'),
  adjusted: amount.default('0'),
  refunded: amount.default('0'),
  lines: z.array(amount).default([]),
  taxes: z.array(amount).default([]),
  discounts: z.array(amount).default([]),
});

/** Two notes at most, of which the second is made final after the first. */
export function createCreditNote(given: unknown) {
  const stated = z
    .object({
      invoice: credited,
      credit_lines: z.array(amount).nullish(),
      same_line: z.boolean().nullish(),
      second_identical_draft_finalized_after_first: z.boolean().nullish(),
    })
    .parse(given);
  const invoice = invoiceOf(stated.invoice);
  const { lines: amounts, taxes, discounts } = stated.invoice;
  const lines = amounts.map((text, index) => lineOf(index, text, taxes[index], discounts[index]));
  const asked = (stated.credit_lines ?? [])
    .map((text, index) => ({ invoice_line_item_id: stated.same_line ? '0' : String(index), amount: text }))
    .filter((line) => line.amount !== '0');
  const plan = planCreditNote(invoice, lines, asked);
  const note = { credit_note_type: plan.credit_note_type, total_amount: plan.total.toFixed() };
  const after = { ...invoice, ...planCreditedInvoice(invoice, note, NOW) } as Invoice;
  const wallet_credit = plan.credit_note_type === 'REFUND' ? plan.total.toFixed() : '0';
  const second = stated.second_identical_draft_finalized_after_first
    ? { first: 'finalized', second_error: errorOf(() => planCreditNote(after, used(lines, asked, plan), asked)) }
    : {};
  return {
    type: plan.credit_note_type,
    total: plan.total.toFixed(),
    tax: plan.total_tax.toFixed(),
    wallet_credit,
    wallet_credit_total: wallet_credit,
    amount_due_after: after.amount_due,
    amount_remaining_after: after.amount_remaining,
    payment_status_after: after.payment_status,
    adjusted_total: after.adjustment_amount,
    accepted: true,
    ...second,
  };
}

function errorOf(act: () => unknown): string | null {
  try {
    act();
    return null;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

function used(
  lines: CreditableLine[],
  asked: { invoice_line_item_id: string }[],
  plan: ReturnType<typeof planCreditNote>,
) {
  return lines.map((line) => {
    const at = asked.findIndex(({ invoice_line_item_id }) => invoice_line_item_id === line.id);
    const own = plan.lines[at];
    return own ? { ...line, credited: own.amount, tax_credited: own.tax } : line;
  });
}

function lineOf(index: number, text: string, tax = '0', discount = '0'): CreditableLine {
  const fields = { amount: new Decimal(text), discount: new Decimal(discount), tax: new Decimal(tax) };
  return { id: String(index), ...fields, credited: ZERO, tax_credited: ZERO };
}

function invoiceOf(stated: z.output<typeof credited>): Invoice {
  const due = new Decimal(stated.total).minus(stated.adjusted);
  const over = new Decimal(stated.amount_paid).minus(due);
  return {
    invoice_status: stated.status,
    payment_status: stated.payment_status,
    currency: 'usd',
    total: stated.total,
    amount_due: due.toFixed(),
    amount_paid: stated.amount_paid,
    amount_remaining: Decimal.max(ZERO, over.negated()).toFixed(),
    adjustment_amount: stated.adjusted,
    refunded_amount: stated.refunded,
    total_prepaid_credits_applied: '0',
  } as Invoice;
}

/** Of an invoice that the adjustment, if it is one, had paid. */
export function voidCreditNote(given: unknown) {
  const {
    type,
    status,
    amount: total_amount,
  } = z
    .object({
      type: z.enum(['ADJUSTMENT', 'REFUND']),
      status: z.enum(['DRAFT', 'FINALIZED', 'VOIDED']),
      amount: amount.default('10'),
    })
    .parse(given);
  const note = { credit_note_type: type, credit_note_status: status, total_amount };
  checkCanVoidNote(note);
  if (status === 'DRAFT') return { voided: true, amount_due_restored: '0' };
  const adjusted = { payment_status: 'SUCCEEDED', total: total_amount, adjusted: total_amount };
  const { amount_due, payment_status } = planUncreditedInvoice(invoiceOf(credited.parse(adjusted)), note);
  return { voided: true, amount_due_restored: amount_due, payment_status_after: payment_status };
}

export function voidInvoice(given: unknown) {
  const stated = z
    .object({
      amount_paid: amount.default('0'),
      prepaid_credits_applied: amount.default('0'),
      refunded: amount.default('0'),
      concurrent_refund: amount.default('0'),
      wallet_balance: amount.nullish(),
      wallet: z.null().optional(),
      payment_status: z.enum(PAYMENT_STATUSES).nullish(),
      invoice_status: z.enum(INVOICE_STATUSES).default('FINALIZED'),
    })
    .parse(given);
  const refunded_amount = new Decimal(stated.refunded).plus(stated.concurrent_refund).toFixed();
  const paid = new Decimal(stated.amount_paid).gt(0) ? 'SUCCEEDED' : 'PENDING';
  const invoice = {
    invoice_status: stated.invoice_status,
    payment_status: stated.payment_status ?? paid,
    amount_paid: stated.amount_paid,
    total_prepaid_credits_applied: stated.prepaid_credits_applied,
    refunded_amount,
  } as Invoice;
  checkVoidable(invoice);
  const refund = computeRefundable(invoice);
  const after = { ...invoice, ...planVoidedPayment(invoice) };
  return {
    refund: refund.toFixed(),
    wallet_balance: refund.plus(stated.wallet_balance ?? 0).toFixed(),
    ...(stated.wallet_balance ? {} : { new_prepaid_wallet_balance: refund.toFixed() }),
    payment_status: after.payment_status,
    refunded_total: after.refunded_amount,
    invoice_status: 'VOIDED',
  };
}

export function numberInvoice(given: unknown) {
  const { config, nth_in_bucket, finalized_at } = z
    .object({
      config: z.object({
        prefix: z.string(),
        separator: z.string(),
        format: z.enum(NUMBER_FORMATS),
        suffix_length: z.number(),
        start_sequence: z.number(),
        timezone: z.string(),
      }),
      nth_in_bucket: z.coerce.bigint(),
      finalized_at: z.string(),
    })
    .parse(given);
  const whole = { ...DEFAULT_INVOICE_NUMBERS, ...config };
  return { invoice_number: formatDocumentNumber(whole, toNumberToken(whole, toInstant(finalized_at)), nth_in_bucket) };
}

export function changePayment(given: unknown) {
  const { from_, to } = z.object({ from_: z.enum(PAYMENT_STATUSES), to: z.enum(PAYMENT_STATUSES) }).parse(given);
  return { allowed: canBecome(from_, to) };
}

export function dueDateOf(given: unknown) {
  const { period_end, payment_terms, due_date_days } = z
    .object({ period_end: z.string(), payment_terms: z.string().nullish(), due_date_days: z.coerce.number().nullish() })
    .parse(given);
  const due = dueDate(
    toInstant(period_end),
    payment_terms,
    due_date_days ?? toWholeSetting('invoice_config', {}).due_date_days,
  );
  return { due_date: new Date(due).toISOString() };
}

/** Drafts of one key are one draft: what differs is the clock of whoever asks, and perhaps the reason. */
export function draftTwice(given: unknown) {
  const { clock_skew_seconds, same_minute, billing_reasons } = z
    .object({
      clock_skew_seconds: z.coerce.number().default(0),
      same_minute: z.boolean().default(true),
      billing_reasons: z.array(z.enum(BILLING_REASONS)).default(['SUBSCRIPTION_CYCLE', 'SUBSCRIPTION_CYCLE']),
    })
    .parse(given);
  const start = toInstant('2026-01-01T00:00:10Z');
  const skew = same_minute ? clock_skew_seconds * 1000 : 60_000;
  const keys = billing_reasons.map((reason, index) => {
    const period = { start: start + index * skew, end: toInstant('2026-02-01T00:00:00Z') };
    return toDraftKey({ subscription_id: 'subs', period, reason });
  });
  return { invoices: new Set(keys).size };
}
