/** The operations of coupons and taxes on core/: what is taken off, spread, taxed, and what an invoice comes to with it. */
import { z } from 'zod';
import type { Coupon } from '../../core/catalog/coupon/record.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { spread } from '../../core/foundation/spread.ts';
import { BILLING_REASONS, INVOICE_TYPES } from '../../core/invoicing/invoice/record.ts';
import { deriveDraftStatus } from '../../core/invoicing/invoice/skipped.ts';
import { type CouponInForce, computeDiscount, isUsableAgain } from '../../core/rating/discounts.ts';
import { applyLineAdjustments } from '../../core/rating/line-adjustments.ts';
import type { RateInForce } from '../../core/rating/taxes.ts';
import { computeTaxes } from '../../core/rating/taxes.ts';
import { buildPrepaidWallet } from '../support/lots.ts';

const money = z.coerce.string().transform((text) => new Decimal(text));
const coupon = z
  .object({ type: z.enum(['fixed', 'percentage']), value: z.coerce.string() })
  .transform(({ type, value }) => ({
    type,
    amount_off: type === 'fixed' ? value : null,
    percentage_off: type === 'percentage' ? value : null,
  }));

const single = z.object({ amount: money, currency: z.string(), coupon });

export function discountSingle(given: unknown) {
  const { amount, currency, coupon: terms } = single.parse(given);
  const discount = computeDiscount(terms, amount, currency);
  return { discount: discount.toFixed(), final_amount: amount.minus(discount).toFixed() };
}

const duration = z.object({
  cadence: z.enum(['once', 'repeated', 'forever']),
  duration_in_periods: z.coerce.number().nullish(),
  billing_period_index: z.coerce.number(),
});

/** The first invoice is that of period 1. */
export function couponApplies(given: unknown) {
  const { billing_period_index, cadence, duration_in_periods = null } = duration.parse(given);
  return { applies: isUsableAgain({ cadence, duration_in_periods }, billing_period_index - 1) };
}

const distribution = z.object({ currency: z.string(), line_amounts: z.array(money), invoice_discount: money });

export function distributeDiscount(given: unknown) {
  const { currency, line_amounts, invoice_discount } = distribution.parse(given);
  const parts = spread(invoice_discount, line_amounts, currency);
  return { line_discounts: parts.map((part) => part.toFixed()), sum: sumDecimals(parts).toFixed() };
}

const taxed = z.object({ taxable_amount: money, currency: z.string(), percentage_rates: z.array(z.coerce.string()) });

export function calculateTax(given: unknown) {
  const { taxable_amount, currency, percentage_rates } = taxed.parse(given);
  const { applied } = computeTaxes([taxable_amount], percentage_rates.map(rate), currency);
  const tax_lines = applied.map(({ tax_amount }) => tax_amount.toFixed());
  return { tax_lines, total_tax: sumDecimals(applied.map(({ tax_amount }) => tax_amount)).toFixed() };
}

const priced = z.object({ amount: money, price_type: z.string() });
const invoice = z.object({
  invoice_type: z.enum(INVOICE_TYPES).default('SUBSCRIPTION'),
  billing_reason: z.enum(BILLING_REASONS).default('SUBSCRIPTION_CYCLE'),
  currency: z.string().default('usd'),
  subtotal: money.nullish(),
  lines: z.array(priced).nullish(),
  invoice_coupons: z.array(coupon).nullish(),
  line_coupons: z.record(z.string(), coupon).nullish(),
  prepaid_wallets: z.array(money).nullish(),
  tax_rates: z.array(z.coerce.string()).nullish(),
});

/** Lines are gross, a subtotal without lines is one of its own; a line coupon names its line by the index. */
export function computeInvoice(given: unknown) {
  const { currency, line_coupons, ...stated } = invoice.parse(given);
  const lines = stated.lines ?? [priced.parse({ amount: stated.subtotal?.toFixed(), price_type: 'FIXED' })];
  const charged = lines.map((line, index) => ({ ...line, key: String(index), charged_ms: null }));
  const ofLines = Object.entries(line_coupons ?? {}).map(([line, terms]) => attached(terms, line));
  const settled = applyLineAdjustments(charged, {
    currency,
    coupons: [...ofLines, ...(stated.invoice_coupons ?? []).map((terms) => attached(terms, null))],
    prepaid: (stated.prepaid_wallets ?? []).map((balance) => buildPrepaidWallet({ balance, price_types: ['USAGE'] })),
    rates: (stated.tax_rates ?? []).map(rate),
  });
  return {
    total_discount: settled.total_discount.toFixed(),
    prepaid_credits_applied: settled.total_prepaid_credits_applied.toFixed(),
    total_tax: settled.total_tax.toFixed(),
    total: settled.total.toFixed(),
    taxable_amount: settled.taxes_applied[0]?.taxable_amount.toFixed(),
    status: deriveDraftStatus(stated, settled),
  };
}

function attached(terms: z.output<typeof coupon>, line: string | null): CouponInForce {
  const given = { coupon: terms as unknown as Coupon, line, start_ms: null, end_ms: null };
  return { ...given, coupon_association_id: null, subscription_id: null };
}

function rate(percentage_value: string): RateInForce {
  const terms = {
    id: percentage_value,
    tax_rate_type: 'percentage',
    fixed_value: null,
    tax_behavior: 'exclusive',
  } as const;
  return { rate: { ...terms, percentage_value }, tax_association_id: null };
}
