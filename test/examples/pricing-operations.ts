/** The operations of the areas pricing.*, rounding*, price_unit and price.validation on core/. */
import { z } from 'zod';
import { createPriceShape, definePrice } from '../../core/catalogue/price.ts';
import type { Decimal } from '../../core/decimal.ts';
import { minorUnits, roundMoney, sumOfRounded } from '../../core/money.ts';
import {
  billedQuantity,
  effectiveUnitPrice,
  priceBuckets,
  priceGroupedBuckets,
  priceQuantity,
} from '../../core/pricing/index.ts';
import { checkPriceUnit, priceUnitFromFiat, priceUnitToFiat } from '../../core/pricing/price-unit.ts';
import type { PriceTerms } from '../../core/pricing/terms.ts';

const decimal = z.union([z.string(), z.number()]).transform(String);
const price = z.custom<PriceTerms & { price_unit_type?: string; price_unit_amount?: string; conversion_rate?: string }>(
  (input) => input !== null && typeof input === 'object',
);

export function calculatePrice(given: unknown) {
  const stated = z.object({ price, quantity: decimal }).parse(given);
  const terms = inFiat(stated.price);
  const quantity = billedQuantity(stated.quantity);
  const amount = priceQuantity(terms, quantity);
  const unit_amount = terms.amount ?? effectiveUnitPrice(amount, quantity);
  return { ...charge(amount, terms.currency), unit_amount: String(unit_amount) };
}

export function calculateBuckets(given: unknown) {
  const { price: terms, bucket_values } = z.object({ price, bucket_values: z.array(decimal) }).parse(given);
  return charge(priceBuckets(inFiat(terms), bucket_values), terms.currency);
}

export function calculateGroupedBuckets(given: unknown) {
  const bucket = z.object({ group_values: z.array(decimal) });
  const { price: terms, buckets } = z.object({ price, buckets: z.array(bucket) }).parse(given);
  const values = buckets.map(({ group_values }) => group_values);
  return charge(priceGroupedBuckets(inFiat(terms), values), terms.currency);
}

export function roundAmount(given: unknown) {
  const { amount, currency } = z.object({ amount: decimal, currency: z.string() }).parse(given);
  return { amount: roundMoney(amount, currency).toFixed() };
}

export function subtotal(given: unknown) {
  const { raw_line_amounts, currency } = z
    .object({ raw_line_amounts: z.array(decimal), currency: z.string() })
    .parse(given);
  return { subtotal: sumOfRounded(raw_line_amounts, currency).toFixed() };
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
  return charge(priceUnitToFiat(stated.price_unit_amount, stated.conversion_rate), stated.base_currency);
}

function charge(exact: Decimal, currency: string) {
  return { amount: roundMoney(exact, currency).toFixed(minorUnits(currency)), amount_exact: exact.toFixed() };
}

function inFiat(terms: z.output<typeof price>): PriceTerms {
  if (terms.price_unit_type !== 'CUSTOM' || terms.amount !== undefined) return terms;
  return { ...terms, amount: priceUnitToFiat(terms.price_unit_amount ?? '', terms.conversion_rate ?? '') };
}
