/**
 * The reference model of invoices: it computes the invoices of a subscription from the accepted events and the terms of
 * its prices alone. It is plain arithmetic over reference-model.ts, without code of the service. It supports usage prices
 * in arrears only.
 *
 *   invoicesByModel({ customer: 'acme', start, end, timezone: 'UTC', period: { weeks: 1 }, prices }, accepted)
 */
import { Temporal } from 'temporal-polyfill';
import {
  Decimal,
  instantText,
  type ModelEntry,
  type ModelMeter,
  type ModelUsage,
  microseconds,
  usageByModel,
} from './reference-model.ts';

type ModelTier = { up_to: number | null; unit_amount: string; flat_amount?: string };
export type ModelTerms =
  | { model: 'FLAT_FEE'; amount: string }
  | { model: 'PACKAGE'; amount: string; divide_by: number; round: 'up' | 'down' }
  /** Tiers in their order; SLAB fills them one after the other, VOLUME takes the one that all units fall in. */
  | { model: 'SLAB' | 'VOLUME'; tiers: ModelTier[] };

export type ModelPrice = {
  name: string;
  terms: ModelTerms;
  meter: ModelMeter;
  /** The meter never resets: it counts from the start of the subscription. */
  cumulative?: boolean;
};

export type ModelSubscription = {
  customer: string;
  start: string;
  end: string;
  timezone: string;
  period: { days?: number; weeks?: number; months?: number; years?: number };
  prices: readonly ModelPrice[];
};

type ModelLine = { name: string; quantity: string; amount: string };
export type ModelInvoice = { start: string; end: string; lines: ModelLine[]; total: string };
/** `whole_end`: end of the period if the subscription did not end. */
type ModelPeriod = { start: string; end: string; whole_end: string };

/** Computes one invoice for each period until the end of the subscription. */
export function invoicesByModel(subscription: ModelSubscription, accepted: readonly ModelEntry[]): ModelInvoice[] {
  return periodsOf(subscription).map((period) => invoiceOf(subscription, accepted, period));
}

/**
 * Each line is rounded to cents, half away from zero, and then they are added up
 * (docs/rules/numbers.md, "Each line first, then the sum").
 */
function invoiceOf(
  subscription: ModelSubscription,
  accepted: readonly ModelEntry[],
  { start, end, whole_end }: ModelPeriod,
): ModelInvoice {
  const { customer, timezone } = subscription;
  const lines = subscription.prices.map(({ name, terms, meter, cumulative }) => {
    const usage = usageByModel(meter, accepted, {
      start: cumulative ? subscription.start : start,
      end,
      customers: [customer],
      timezone,
      billing_anchor: subscription.start,
      // The divisor of a WEIGHTED_SUM is the length of the whole period, also if the period is cut (docs/rules/metering.md, "Levels over
      // time").
      level_period: { start, end: whole_end },
    });
    const amount = chargeByModel(terms, usage).toDecimalPlaces(2);
    // A line shows at most 18 decimals; the exact quantity is priced.
    return { name, quantity: notNegative(new Decimal(usage.value)).toDecimalPlaces(18).toFixed(), amount };
  });
  const total = lines.reduce((sum, { amount }) => sum.plus(amount), new Decimal(0));
  const shown = lines.map((line) => ({ ...line, amount: line.amount.toFixed() }));
  return { start, end, lines: shown, total: total.toFixed() };
}

/** Exact charge, not rounded. Every bucket, and every group in it, is priced separately. */
export function chargeByModel(terms: ModelTerms, { buckets, value }: Pick<ModelUsage, 'buckets' | 'value'>): Decimal {
  const priced = (buckets ?? [new Decimal(value)]).map((quantity) => computeCost(terms, notNegative(quantity)));
  return priced.reduce((total, cost) => total.plus(cost), new Decimal(0));
}

/** A quantity below 0 is billed as 0 (docs/rules/pricing.md, "Never below zero"). */
export function notNegative(quantity: Decimal): Decimal {
  return quantity.lt(0) ? new Decimal(0) : quantity;
}

/** The price models (docs/rules/pricing.md). In each of them a quantity of 0 costs nothing. */
export function computeCost(terms: ModelTerms, quantity: Decimal): Decimal {
  if (quantity.isZero()) return new Decimal(0);
  switch (terms.model) {
    case 'FLAT_FEE':
      return quantity.times(terms.amount);
    case 'PACKAGE': {
      const packages = quantity.div(terms.divide_by);
      return (terms.round === 'up' ? packages.ceil() : packages.floor()).times(terms.amount);
    }
    case 'VOLUME':
      return costInTier(terms.tiers.find(({ up_to }) => up_to === null || quantity.lte(up_to))!, quantity);
    case 'SLAB': {
      let [cost, below] = [new Decimal(0), new Decimal(0)];
      for (const tier of terms.tiers) {
        if (quantity.lte(below)) break;
        const top = tier.up_to === null || quantity.lt(tier.up_to) ? quantity : new Decimal(tier.up_to);
        cost = cost.plus(costInTier(tier, top.minus(below)));
        below = top;
      }
      return cost;
    }
  }
}

function costInTier({ unit_amount, flat_amount = '0' }: ModelTier, units: Decimal): Decimal {
  return units.times(unit_amount).plus(flat_amount);
}

/** Half-open periods, counted from the start in the time zone; the last one is cut at the end. */
function periodsOf({ start, end, timezone, period }: ModelSubscription): ModelPeriod[] {
  const anchor = Temporal.Instant.from(start).toZonedDateTimeISO(timezone);
  const last = microseconds(end);
  const nth = (index: number) => {
    const times = Object.fromEntries(Object.entries(period).map(([unit, count]) => [unit, count * index]));
    return anchor.add(times).epochNanoseconds / 1000n;
  };
  const periods: ModelPeriod[] = [];
  for (let index = 0; nth(index) < last; index++) {
    const next = nth(index + 1);
    const whole_end = instantText(next);
    periods.push({ start: instantText(nth(index)), end: next < last ? whole_end : instantText(last), whole_end });
  }
  return periods;
}
