/**
 * Cost of a quantity under a price without a subscription (docs/rules/pricing.md, "Cost of a quantity"). It is the amount of an invoice
 * line with that quantity, because both sum the parts of `chargeParts` and are rounded once.
 */
import type { ChargeDefinition } from '../catalog/price/record.ts';
import type { TimeBucket } from '../catalog/price/time-buckets.ts';
import { chargeParts } from '../catalog/pricing/charge.ts';
import type { ChargePart } from '../catalog/pricing/terms.ts';
import { isOpen, sortTiers } from '../catalog/pricing/tiers.ts';
import { Decimal, sumDecimals } from '../foundation/decimal.ts';
import { invalid } from '../foundation/error.ts';
import { roundMoney } from '../foundation/money.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { type WindowSize, windowAt } from '../foundation/time/window.ts';
import { windowedCharge } from './commitments/windowed.ts';

/** One window of a meter, in which the times of day of a price apply. */
export type CostWindow = {
  readonly at: Milliseconds;
  readonly size: WindowSize;
  readonly time_buckets: readonly TimeBucket[];
};

type QuantityCostInput = {
  readonly price: ChargeDefinition;
  /** Null for a price without times of day. */
  readonly window: CostWindow | null;
};

type QuantityCostLine = {
  /** Units below this tier: the line covers the units above it. */
  readonly from: string;
  readonly up_to: string | null;
  readonly quantity: Decimal;
  readonly unit_amount: Decimal;
  readonly flat_amount: Decimal | null;
  readonly amount: Decimal;
};

export type QuantityCost = {
  readonly quantity: string;
  readonly amount: Decimal;
  readonly amount_rounded: Decimal;
  readonly lines: readonly QuantityCostLine[];
};

/** Maximum of quantities × tiers: the answer may have a line for each of them. They take about a fifth of a second. */
const LINES_MAX = 20_000;

/** Computes the cost of each quantity. A faulty quantity is refused with its index. */
export function computeQuantityCosts(quantities: readonly string[], input: QuantityCostInput): QuantityCost[] {
  checkLineCount(quantities.length, input);
  return quantities.map((quantity, index) => {
    checkQuantity(quantity, { price: input.price, field: `quantities[${index}]` });
    return computeQuantityCost(quantity, input);
  });
}

function checkLineCount(count: number, { price, window }: QuantityCostInput): void {
  const terms = [price, ...(window?.time_buckets ?? []).map((bucket) => bucket.price)];
  const tier_count = Math.max(...terms.map((one) => one?.tiers?.length ?? 0));
  if (count * tier_count <= LINES_MAX) return;
  const quantities_max = Math.floor(LINES_MAX / tier_count);
  throw invalid(
    'quantities',
    `must not have more than ${quantities_max} entries for a price with ${tier_count} tiers`,
    {
      quantities_max,
    },
  );
}

function checkQuantity(text: string, { price, field }: { price: ChargeDefinition; field: string }): void {
  const quantity = new Decimal(text);
  if (quantity.isNegative()) throw invalid(field, 'must not be negative');
  const { type, min_quantity } = price;
  if (type === 'FIXED' && min_quantity && quantity.lt(min_quantity))
    throw invalid(field, `is below the min_quantity ${min_quantity} of the price`);
}

function computeQuantityCost(quantity: string, { price, window }: QuantityCostInput): QuantityCost {
  const charged = window === null ? chargeAlone(quantity, price) : chargeInWindow(quantity, price, window);
  return { quantity, ...charged, amount_rounded: roundMoney(charged.amount, price.currency) };
}

function chargeAlone(quantity: string, price: ChargeDefinition) {
  const parts = chargeParts(price, quantity);
  const sorted = sortTiers(price.tiers ?? []);
  return {
    amount: sumDecimals(parts.map((part) => part.amount)),
    lines: parts.map((part) => toCostLine(part, sorted)),
  };
}

/** Charges the quantity as the usage of one window, under the commitment of its time of day. */
function chargeInWindow(quantity: string, price: ChargeDefinition, { at, size, time_buckets }: CostWindow) {
  const windows = { size, timezone: 'UTC' };
  const range = windowAt(at, size, windows);
  const commitment = { ...ONLY_TIMES_OF_DAY, windows, time_buckets };
  const used = [{ at, values: [new Decimal(quantity)] }];
  const { charge, parts } = windowedCharge({ commitment, price, range, over_until: range.end, used });
  const sorted = sortTiers(price.tiers ?? []);
  // A time of day without a price has that of the others.
  const own = time_buckets.flatMap(({ id, price: terms }) =>
    terms ? [[id, sortTiers(terms.tiers ?? [])] as const] : [],
  );
  const sortedTiers = new Map(own);
  const lines = parts.map(({ part, time_bucket }) => toCostLine(part, sortedTiers.get(time_bucket) ?? sorted));
  return { amount: charge, lines };
}

const ONLY_TIMES_OF_DAY = {
  type: 'amount',
  value: null,
  overage_factor: new Decimal(1),
  true_up: false,
  duration: null,
} as const;

function toCostLine(
  { tier, units, unit_amount, flat_amount, amount }: ChargePart,
  sorted: NonNullable<ChargeDefinition['tiers']>,
): QuantityCostLine {
  const bound = (index: number) => {
    const own = sorted[index];
    return own === undefined || isOpen(own) ? null : String(own.up_to);
  };
  return {
    from: (tier !== null && bound(tier - 1)) || '0',
    up_to: tier === null ? null : bound(tier),
    quantity: units,
    unit_amount,
    flat_amount: tier === null || flat_amount.isZero() ? null : flat_amount,
    amount,
  };
}
