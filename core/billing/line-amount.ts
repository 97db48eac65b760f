/**
 * What one line costs, and what that was computed from (docs/rules/invoices.md, "What a line was computed from"). It is
 * rounded here and nowhere earlier (docs/rules/numbers.md, "Each line first, then the sum"); what is measured below zero is
 * recorded, and billed as 0 (docs/rules/pricing.md, "Never below zero"). Fixed charges are prorated by the computed charge,
 * usage never is (docs/rules/proration.md, "The computed charge is prorated").
 */

import { type Decimal, sumOf, ZERO } from '../decimal.ts';
import type { ComputedFrom } from '../invoice/record.ts';
import { MAX_FRACTION_DIGITS, roundMoney } from '../money.ts';
import { CHARGED_FIELDS } from '../price/record.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../pricing/charge.ts';
import type { ChargePart } from '../pricing/terms.ts';
import { formatMs } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { BilledItem } from './charges.ts';
import { prorate, type Share, shareText } from './proration.ts';

/** A line item with what prices it. */
export type PricedItem = BilledItem & {
  readonly price: PriceTerms;
  /** Units of a fixed price; a usage price is measured. */
  readonly quantity: Decimal;
  readonly display_name: string;
  readonly meter_id: string | null;
};

/** What the meter of a usage charge measured in the charge's window. */
export type MeasuredUsage = {
  readonly quantity: Decimal;
  readonly event_count: number;
  readonly buckets: readonly (readonly Decimal[])[] | null;
  readonly as_of: string;
  readonly high_water: Readonly<Record<string, string>>;
  /** Which definition of the meter counted. */
  readonly meter_version: number;
};

export type LineAmount = {
  readonly quantity: Decimal;
  readonly amount: Decimal;
  readonly computed_from: ComputedFrom;
};

export type PlannedLine<Item extends PricedItem = PricedItem> = LineAmount & {
  readonly item: Item;
  readonly service: Period;
  readonly display_name: string;
  /** The invoice line that this one corrects; null for a charge of its own. */
  readonly parent_line_item_id: string | null;
};

/** Advance or arrear: the computed charge for the quantity × the share of the period that is paid for. */
export function fixedCharge(item: PricedItem, share: Share, currency: string): LineAmount {
  const parts = chargeParts(item.price, item.quantity);
  const full = sumOf(parts.map((part) => part.amount));
  return {
    quantity: item.quantity,
    amount: roundMoney(prorate(full, share), currency),
    computed_from: {
      price: priceSnapshot(item.price),
      quantity: item.quantity.toFixed(),
      breakdown: parts.map(partText),
      proration: shareText(share),
    },
  };
}

/** Usage is never prorated: the window already says how long it was counted. */
export function usageCharge(
  item: PricedItem,
  window: Period,
  { measured, currency }: { measured: MeasuredUsage; currency: string },
): LineAmount {
  const parts = usageParts(item.price, measured);
  return {
    quantity: shownQuantity(measured.quantity),
    amount: roundMoney(sumOf(parts.map((part) => part.amount)), currency),
    computed_from: {
      price: priceSnapshot(item.price),
      meter_id: item.meter_id,
      meter_version: String(measured.meter_version),
      window_start: formatMs(window.start),
      window_end: formatMs(window.end),
      quantity: measured.quantity.toFixed(),
      event_count: measured.event_count,
      high_water: { ...measured.high_water },
      as_of: measured.as_of,
      breakdown: parts.map(partText),
    },
  };
}

/** As a line can show it: a mean may have more digits than a quantity; what is priced and recorded is exact. */
function shownQuantity(quantity: Decimal): Decimal {
  return billedQuantity(quantity).toDecimalPlaces(MAX_FRACTION_DIGITS);
}

/** A bucketed meter prices each bucket, and each group in it, on its own; its explanation adds up what fell in each tier. */
function usageParts(price: PriceTerms, measured: MeasuredUsage): ChargePart[] {
  if (measured.buckets === null) return chargeParts(price, billedQuantity(measured.quantity));
  const byTier = new Map<number | null, ChargePart>();
  for (const value of measured.buckets.flat()) {
    for (const part of chargeParts(price, billedQuantity(value))) {
      const before = byTier.get(part.tier);
      byTier.set(part.tier, before === undefined ? part : addParts(before, part));
    }
  }
  return [...byTier.values()].sort((a, b) => (a.tier ?? 0) - (b.tier ?? 0));
}

function addParts(a: ChargePart, b: ChargePart): ChargePart {
  return {
    tier: a.tier,
    units: a.units.plus(b.units),
    unit_amount: a.unit_amount,
    flat_amount: a.flat_amount.plus(b.flat_amount),
    amount: a.amount.plus(b.amount),
  };
}

function partText(part: ChargePart): Record<string, unknown> {
  return {
    tier: part.tier,
    units: part.units.toFixed(),
    unit_amount: part.unit_amount.toFixed(),
    flat_amount: part.flat_amount.toFixed(),
    amount: part.amount.toFixed(),
  };
}

/** The money fields of the price as they were: an edit of the price later must not change what the line says. */
function priceSnapshot(price: PriceTerms): Record<string, unknown> {
  const { billing_model, currency, amount } = price;
  const charged = Object.fromEntries(CHARGED_FIELDS.map((field) => [field, price[field] ?? null]));
  return { billing_model, currency, ...charged, amount: String(amount ?? ZERO) };
}
