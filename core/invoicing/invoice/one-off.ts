/**
 * A manual invoice (docs/rules/invoices.md, "Invoices written by hand"). Without lines the whole amount is one line, so
 * the totals of every invoice are the sum of its lines. Amounts are given, not computed. An amount with more decimals
 * than the currency is refused, not rounded.
 */

import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { invalid, notAllowed } from '../../foundation/error.ts';
import { checkCurrency, minorUnits } from '../../foundation/money.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import { ADJUSTMENT_FIELDS, buildAdjustments } from '../../rating/adjustment-fields.ts';
import { buildQuantityFields, QUANTITY_FIELDS } from '../../rating/quantity-fields.ts';
import { type Totals, totalsText } from '../../rating/totals.ts';
import { hasContent, refuseUsed } from '../../subscriptions/not-yet.ts';
import { derivePaymentState } from './payment-status.ts';
import type { CreateInvoice, CreateInvoiceLine, PaymentStatus } from './record.ts';

/** Fields that a client cannot set, because the service computes or does not support them. */
const INVOICE_NOT_YET = ['force_sync_invoice'] as const satisfies readonly (keyof CreateInvoice)[];
const LINE_NOT_YET = ['commitment_info', ...QUANTITY_FIELDS] as const satisfies readonly (keyof CreateInvoiceLine)[];

export type ManualInvoice = ReturnType<typeof defineManualInvoice>;

export function defineManualInvoice(request: CreateInvoice) {
  const currency = checkCurrency(request.currency);
  refuseUsed(request, INVOICE_NOT_YET);
  refuseComputed(request, ['total_prepaid_applied'], '');
  if (request.invoice_number)
    throw notAllowed('invoice_number: is assigned when the invoice is finalized', { field: 'invoice_number' });
  checkType(request);
  checkPeriod(request, '');
  const lines = request.line_items?.length ? request.line_items : toSingleLine(request);
  const { invoice_type } = request;
  for (const [index, line] of lines.entries()) checkLine(line, { invoice_type, currency, at: `line_items[${index}]` });
  const subtotal = sumDecimals(lines.map((line) => new Decimal(line.amount)));
  checkSum(request, subtotal);
  if (request.invoice_type === 'CREDIT') refuseUsed(request, NOT_ALLOWED_ON_CREDIT);
  return { currency, lines };
}

/** Fields that a CREDIT invoice cannot have: discounts and taxes. */
const NOT_ALLOWED_ON_CREDIT = [
  'coupons',
  'invoice_coupons',
  'line_item_coupons',
  'tax_rates',
  'tax_rate_overrides',
  'prepared_tax_rates',
] as const satisfies readonly (keyof CreateInvoice)[];

export function computeManualAmounts(request: CreateInvoice, currency: string, totals: Totals) {
  const isCredit = request.invoice_type === 'CREDIT';
  const { subtotal, total_discount, total_tax, total, amount_due } = totalsText(totals);
  // Computed totals are never below 0. The total of a CREDIT invoice may be, so it is the subtotal, which no discount or tax changes.
  const amounts = isCredit
    ? { subtotal, total_discount, total_tax, total: subtotal, amount_due: subtotal }
    : { subtotal, total_discount, total_tax, total, amount_due };
  return { ...amounts, ...deriveOpeningPayment(request, amounts.amount_due, currency) };
}

function checkType(request: CreateInvoice): void {
  if (request.invoice_type !== 'SUBSCRIPTION') return;
  for (const field of ['subscription_id', 'billing_period', 'period_start', 'period_end'] as const) {
    if (!request[field]) throw invalid(field, 'is required for a SUBSCRIPTION invoice');
  }
}

function checkPeriod(
  { period_start, period_end }: { period_start: string | null; period_end: string | null },
  at: string,
): void {
  if (period_start && period_end && toInstant(period_end) < toInstant(period_start)) {
    throw invalid(`${at}period_end`, 'must not be before period_start');
  }
}

function checkLine(
  line: CreateInvoiceLine,
  { invoice_type, ...rule }: { invoice_type: CreateInvoice['invoice_type']; currency: string; at: string },
): void {
  checkLineInput(line, { ...rule, mayBeNegative: invoice_type === 'CREDIT' });
  if (invoice_type === 'SUBSCRIPTION' && !line.price_id) {
    throw invalid(`${rule.at}.price_id`, 'is required for a SUBSCRIPTION invoice');
  }
}

export function checkLineInput(
  line: CreateInvoiceLine,
  { currency, at, mayBeNegative }: { currency: string; at: string; mayBeNegative: boolean },
): void {
  refuseUsed(line, LINE_NOT_YET, `${at}.`);
  refuseComputed(line, ADJUSTMENT_FIELDS, `${at}.`);
  checkAmount(line.amount, { field: `${at}.amount`, currency, mayBeNegative });
  if (new Decimal(line.quantity).isNegative()) throw invalid(`${at}.quantity`, 'must not be negative');
  checkPeriod(line, `${at}.`);
}

function refuseComputed(record: object, fields: readonly string[], at: string): void {
  const values = record as Record<string, unknown>;
  for (const field of fields)
    if (hasContent(values[field]))
      throw invalid(`${at}${field}`, 'is computed when the invoice becomes final: leave it out');
}

function checkAmount(amount: string, rule: { field: string; currency: string; mayBeNegative: boolean }): void {
  const value = new Decimal(amount);
  if (value.isNegative() && !rule.mayBeNegative) throw invalid(rule.field, 'must not be negative');
  if (value.decimalPlaces() > minorUnits(rule.currency)) {
    throw invalid(rule.field, `has more decimals than ${rule.currency}`);
  }
}

/** Each of these fields that the request sets must equal the sum of the lines. The service computes discounts and taxes afterwards. */
export function checkSum(
  request: { readonly [Field in 'subtotal' | 'total' | 'amount_due']: string | null },
  sum: Decimal,
): void {
  for (const field of ['subtotal', 'total', 'amount_due'] as const) {
    const requested = request[field];
    if (requested !== null && !new Decimal(requested).eq(sum)) {
      throw invalid(field, `is ${requested}, but the line items sum to ${sum.toFixed()}`);
    }
  }
}

function toSingleLine(request: CreateInvoice): CreateInvoiceLine[] {
  const amount = request.amount_due ?? request.total ?? request.subtotal;
  if (amount === null) throw invalid('amount_due', 'is required without line_items');
  if (new Decimal(amount).isZero()) return [];
  return [
    {
      ...NO_LINE_FIELDS,
      amount,
      quantity: '1',
      display_name: request.description,
      period_start: request.period_start,
      period_end: request.period_end,
    },
  ];
}

const NO_LINE_FIELDS: Omit<CreateInvoiceLine, 'amount' | 'quantity'> = {
  entity_id: null,
  entity_type: null,
  plan_id: null,
  plan_display_name: null,
  price_id: null,
  price_type: null,
  meter_id: null,
  meter_display_name: null,
  price_unit: null,
  price_unit_amount: null,
  display_name: null,
  period_start: null,
  period_end: null,
  metadata: null,
  commitment_info: null,
  ...buildAdjustments(() => null),
  subscription_line_item_id: null,
  subscription_id: null,
  ...buildQuantityFields(() => null),
};

const OPENING_STATUSES: readonly PaymentStatus[] = ['PENDING', 'SUCCEEDED', 'OVERPAID', 'FAILED'];

/** Payment that the client reports with a new invoice. */
function deriveOpeningPayment(request: CreateInvoice, amount_due: string, currency: string) {
  const payment_status = request.payment_status ?? 'PENDING';
  if (!OPENING_STATUSES.includes(payment_status)) {
    throw invalid('payment_status', 'cannot be that of a new invoice', { allowed: OPENING_STATUSES });
  }
  if (request.invoice_status !== 'FINALIZED' && payment_status !== 'PENDING')
    throw invalid('payment_status', 'must be PENDING of a draft: only a final invoice is paid', {
      allowed: ['PENDING'],
    });
  if (request.invoice_type === 'CREDIT' && new Decimal(amount_due).isNegative()) {
    if (request.amount_paid && !new Decimal(request.amount_paid).isZero())
      throw invalid('amount_paid', 'a credit is not paid');
    return { payment_status, amount_paid: '0', amount_remaining: '0', overpaid_amount: null };
  }
  const unstated = payment_status === 'SUCCEEDED' ? amount_due : ZERO;
  return derivePaymentState(
    { amount_due, currency },
    { payment_status, paid: new Decimal(request.amount_paid ?? unstated) },
  );
}
