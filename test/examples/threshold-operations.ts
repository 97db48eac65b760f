/** The operations of the area threshold: the running period is planned as production plans it. */
import { z } from 'zod';
import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { Decimal, ZERO } from '../../core/foundation/decimal.ts';
import type { PricedItem } from '../../core/rating/line-amount.ts';
import type { PartialCharge } from '../../core/rating/partial-charges.ts';
import {
  buildInvoicePlan,
  chargeKey,
  type InvoicePlanInput,
  planLines,
  planThreshold,
} from '../../core/rating/plan-invoice.ts';
import { hasReachedThreshold } from '../../core/rating/threshold.ts';
import { JANUARY, usageItem } from './january.ts';

const decimal = z.union([z.string(), z.number()]).transform(String);
const units = decimal.transform((text) => new Decimal(text));
const price = z.custom<PriceTerms>((input) => input !== null && typeof input === 'object');

const NOW = Date.UTC(2026, 0, 20);
const SO_FAR = { start: JANUARY.start, end: NOW };

function questionOf(terms: PriceTerms, used: Decimal, partial: readonly PartialCharge[]): InvoicePlanInput<PricedItem> {
  const measured = { quantity: used, event_count: 1, buckets: null, as_of: '', high_water: {}, meter_version: 1 };
  return {
    subscription: {
      start_ms: JANUARY.start,
      end_ms: null,
      billing_anchor_ms: JANUARY.start,
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      timezone: 'UTC',
    },
    items: [usageItem(terms)],
    period: SO_FAR,
    reference: 'period_end',
    currency: terms.currency,
    invoiced: new Set(),
    usage: new Map([[chargeKey('line', JANUARY), measured]]),
    closed: [],
    recorded: [],
    partial,
    commitment: null,
    true_ups: [],
    coupons: [],
  };
}

/** What an earlier invoice of the period says of so many units. */
function partialOf(terms: PriceTerms, used: Decimal): PartialCharge[] {
  const { lines } = planThreshold(questionOf(terms, used, []));
  return lines.map(({ item, service, amount, quantity }) => ({ item_id: item.id, service, amount, quantity }));
}

export function scanThreshold(given: unknown) {
  const stated = z
    .object({
      auto_invoice_threshold: decimal.nullish(),
      unit_amount: decimal,
      usage_quantity: units,
      after_previous_threshold_invoice: z.union([z.boolean(), units]).optional(),
    })
    .parse(given);
  const terms: PriceTerms = { billing_model: 'FLAT_FEE', currency: 'usd', amount: stated.unit_amount };
  const threshold = stated.auto_invoice_threshold ?? null;
  const earlier = stated.after_previous_threshold_invoice;
  // What was used before the earlier invoice comes on top: just what reaches the threshold, where it is not said.
  const before =
    earlier === undefined || earlier === false
      ? ZERO
      : earlier === true
        ? new Decimal(threshold ?? '0').dividedBy(stated.unit_amount)
        : earlier;
  const partial = before.isZero() ? [] : partialOf(terms, before);
  const { subtotal } = planThreshold(questionOf(terms, before.plus(stated.usage_quantity), partial));
  const invoiced = hasReachedThreshold(threshold, subtotal);
  return { invoiced, subtotal: (invoiced ? subtotal : ZERO).toFixed() };
}

export function tierContinuity(given: unknown) {
  const stated = z.object({ price, threshold_invoice_quantity: units, later_quantity_same_period: units }).parse(given);
  const { price: terms, threshold_invoice_quantity: first, later_quantity_same_period: later } = stated;
  const early = planThreshold(questionOf(terms, first, []));
  const closing = { ...questionOf(terms, first.plus(later), partialOf(terms, first)), period: JANUARY };
  return { total_for_period: early.subtotal.plus(buildInvoicePlan(planLines(closing), closing).subtotal).toFixed() };
}
