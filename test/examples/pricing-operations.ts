/** The operations of the areas pricing.*, rounding*, price_unit and price.validation on core/. */
import { z } from 'zod';
import { definePrice } from '../../core/catalog/price/define.ts';
import { createPriceShape } from '../../core/catalog/price/record.ts';
import { checkTimeBuckets, timeBucketsShape } from '../../core/catalog/price/time-buckets.ts';
import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { checkPriceUnit, priceUnitFromFiat, priceUnitToFiat } from '../../core/catalog/pricing/price-unit.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { minorUnits, roundMoney } from '../../core/foundation/money.ts';
import { windowSize } from '../../core/metering/meter/record.ts';
import { type LineAmount, priceFixedCharge, priceUsageCharge } from '../../core/rating/line-amount.ts';
import { computeTotals } from '../../core/rating/totals.ts';
import { JANUARY, usageItem } from './january.ts';

const decimal = z.union([z.string(), z.number()]).transform(String);
type Stated = PriceTerms & {
  type?: string;
  price_unit_type?: string;
  price_unit_amount?: string;
  conversion_rate?: string;
};
const price = z.custom<Stated>((input) => input !== null && typeof input === 'object');

/** As the line of an invoice: what is fixed by its quantity, what is measured by what the meter said. */
export function calculatePrice(given: unknown) {
  const stated = z.object({ price, quantity: decimal }).parse(given);
  const terms = inFiat(stated.price);
  const quantity = new Decimal(stated.quantity);
  const line = terms.type === 'FIXED' ? fixedLine(terms, quantity) : usageLine(terms, quantity, null);
  const unit_amount = terms.amount ?? (quantity.isZero() ? '0' : exactAmount(line).dividedBy(quantity));
  return { ...amounts(line, terms.currency), unit_amount: String(unit_amount) };
}

export function calculateBuckets(given: unknown) {
  const { price: terms, bucket_values } = z.object({ price, bucket_values: z.array(decimal) }).parse(given);
  return bucketedLine(
    terms,
    bucket_values.map((value) => [value]),
  );
}

export function calculateGroupedBuckets(given: unknown) {
  const bucket = z.object({ group_values: z.array(decimal) });
  const { price: terms, buckets } = z.object({ price, buckets: z.array(bucket) }).parse(given);
  return bucketedLine(
    terms,
    buckets.map(({ group_values }) => group_values),
  );
}

function bucketedLine(stated: Stated, values: readonly (readonly string[])[]) {
  const buckets = values.map((groups) => groups.map((value) => new Decimal(value)));
  const terms = inFiat(stated);
  return amounts(usageLine(terms, sumDecimals(buckets.flat()), buckets), terms.currency);
}

const WHOLE = { part_ms: 1, whole_ms: 1 };

function fixedLine(terms: PriceTerms, quantity: Decimal): LineAmount {
  return priceFixedCharge(usageItem(terms, { quantity }), WHOLE, terms.currency);
}

function usageLine(terms: PriceTerms, quantity: Decimal, buckets: readonly (readonly Decimal[])[] | null): LineAmount {
  const measured = { quantity, buckets, event_count: 1, as_of: '', high_water: {}, meter_version: 1 };
  return priceUsageCharge(usageItem(terms, { quantity }), JANUARY, { measured, currency: terms.currency });
}

/** A line is rounded; before that it is the sum of what its breakdown says. */
function exactAmount({ computed_from }: LineAmount): Decimal {
  return sumDecimals((computed_from.breakdown ?? []).map(({ amount }) => new Decimal(String(amount))));
}

/** With the digits of the currency, and never fewer than it has: to round here would hide a line that was not rounded. */
function amounts(line: LineAmount, currency: string) {
  const digits = Math.max(minorUnits(currency), line.amount.decimalPlaces());
  return { amount: line.amount.toFixed(digits), amount_exact: exactAmount(line).toFixed() };
}

export function roundAmount(given: unknown) {
  const { amount, currency } = z.object({ amount: decimal, currency: z.string() }).parse(given);
  return { amount: roundMoney(amount, currency).toFixed() };
}

/** Each line for one unit at its raw amount. */
export function subtotal(given: unknown) {
  const { raw_line_amounts, currency } = z
    .object({ raw_line_amounts: z.array(decimal), currency: z.string() })
    .parse(given);
  const lines = raw_line_amounts.map((amount) =>
    fixedLine({ billing_model: 'FLAT_FEE', currency, amount }, new Decimal(1)),
  );
  return {
    subtotal: computeTotals(
      lines.map(({ amount }) => amount),
      currency,
    ).subtotal.toFixed(),
  };
}

/** What the row leaves out is filled with what is valid, so that only what it states can be at fault. */
export function createPrice(given: unknown) {
  const { price: stated } = z.object({ price: z.record(z.string(), z.unknown()) }).parse(given);
  const request = {
    type: 'FIXED',
    currency: 'usd',
    billing_period: 'MONTHLY',
    invoice_cadence: stated.type === 'USAGE' ? 'ARREAR' : 'ADVANCE',
    entity_type: 'PLAN',
    entity_id: 'plan_x',
    ...('billing_model' in stated ? {} : { billing_model: 'FLAT_FEE', amount: '1' }),
    ...stated,
  };
  definePrice(createPriceShape.parse(request));
  return { http_status: 201 };
}

const timeOfDay = z.string().transform((text) => {
  const [hour, minute] = text.split(':').map(Number);
  return { hour, minute };
});
const statedBucket = z.looseObject({
  start: timeOfDay,
  end: timeOfDay,
  commitment_amount: decimal.optional(),
  commitment_quantity: decimal.optional(),
});

/** The rows say a commitment by its kind; a price of a bucket has one by its type and value. */
export function validateTimeBuckets(given: unknown) {
  const { buckets, meter_bucket_size } = z
    .object({ buckets: z.array(statedBucket), meter_bucket_size: windowSize })
    .parse(given);
  const requested = timeBucketsShape.safeParse(
    buckets.map(({ commitment_amount, commitment_quantity, true_up, ...stated }) => ({
      ...stated,
      commitment_type: commitment_quantity === undefined ? 'amount' : 'quantity',
      commitment_value: commitment_quantity ?? commitment_amount,
      true_up_enabled: true_up,
    })),
  );
  if (!requested.success) return { valid: false };
  try {
    const kept = checkTimeBuckets(requested.data, {
      bucket_size: meter_bucket_size,
      currency: 'usd',
      field: 'buckets',
    });
    return { valid: true, starts: kept.map(({ start }) => clock(start)), ends: kept.map(({ end }) => clock(end)) };
  } catch (error) {
    if (error instanceof FarthingError) return { valid: false };
    throw error;
  }
}

const clock = (time: { hour: number; minute: number }) =>
  [time.hour, time.minute].map((part) => String(part).padStart(2, '0')).join(':');

const unit = z.object({ conversion_rate: decimal, base_currency: z.string() });

export function createPriceUnit(given: unknown) {
  checkPriceUnit(unit.extend({ code: z.string() }).parse(given));
  return { http_status: 201 };
}

export function fromFiat(given: unknown) {
  const { amount, conversion_rate } = unit.extend({ amount: decimal }).parse(given);
  return { price_unit_amount: priceUnitFromFiat(amount, conversion_rate).toFixed() };
}

export function toFiat(given: unknown) {
  const stated = unit.extend({ price_unit_amount: decimal }).parse(given);
  const exact = priceUnitToFiat(stated.price_unit_amount, stated.conversion_rate);
  const amount = roundMoney(exact, stated.base_currency).toFixed(minorUnits(stated.base_currency));
  return { amount, amount_exact: exact.toFixed() };
}

function inFiat(terms: Stated): Stated {
  if (terms.price_unit_type !== 'CUSTOM' || terms.amount !== undefined) return terms;
  return { ...terms, amount: priceUnitToFiat(terms.price_unit_amount ?? '', terms.conversion_rate ?? '') };
}
