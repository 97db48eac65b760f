/**
 * Converts the charge of a service to records of the usage export, cut by its intervals (docs/rules/usage.md, "What a day adds to a
 * charge").
 */

import { type PriceTerms, priceText } from '../../../core/catalog/pricing/charge.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { type Microseconds, toUs } from '../../../core/foundation/time/instant.ts';
import {
  type ChargedAmounts,
  type ChargeInterval,
  computeAddedCharge,
  isNothing,
  NOTHING_CHARGED,
  toChargedAmounts,
} from '../../../core/rating/charge-intervals.ts';
import { type BilledSubscription, countingStart } from '../../../core/rating/charges.ts';
import type { MeterModel } from '../../../storage/models/metering/meter.ts';
import { type AnalyticsItem } from './analytics-items.ts';
import { type ChainedCharge } from './chained-charges.ts';
import { type InvoicedUsageLine } from './invoiced-usage-lines.ts';
import { type UsageCut } from './measure-cuts.ts';
import type { UsageExportQuery } from './usage-export-query.ts';

/** The line that charges the usage of a record, and the amount. */
export type ExportedCharge = {
  readonly line_item_id: string;
  readonly subscription_id: string;
  readonly plan: string;
  readonly line: string;
  readonly price: string;
  readonly amount: Decimal;
  readonly currency: string;
  /** Null if the charge is on no invoice yet; a draft has no number yet. */
  readonly invoice: InvoicedUsageLine['invoice'];
};

export type ExportedChargeUsage = ChargeInterval & {
  readonly external_customer_id: string;
  readonly meter: MeterModel;
  readonly usage: Decimal;
  readonly event_count: number;
  readonly charge: ExportedCharge;
};

/** An invoice line, and the events and amounts that it adds to those of the earlier lines of its charge. */
export type CountedInvoiceLine = { readonly line: InvoicedUsageLine; readonly added: ChargedAmounts };

/** A service period of a line item that overlaps the range. */
export type ExportServiceCharge = {
  readonly item: AnalyticsItem;
  readonly service: ChargeInterval;
  readonly subscription: BilledSubscription;
  /** Share of the line in the cost of its chain (docs/rules/proration.md, "Usage over a change"); undefined if it is charged by itself. */
  readonly chained: ChainedCharge | undefined;
  /** Parts of the service in the range, cut by the split of the export. */
  readonly intervals: readonly ChargeInterval[];
  /** Lines of progressive billing, oldest first. */
  readonly partial: readonly CountedInvoiceLine[];
  /** The charge's own line first, from an invoice or the preview, then its corrections. */
  readonly lines: readonly CountedInvoiceLine[];
};

/** Whether the export contains the whole service, and lines cover it completely. */
export function isFullyInvoiced(charge: ExportServiceCharge): boolean {
  const { partial, lines, service } = charge;
  const isInvoiced = lines.length > 0 || toUs(partial.at(-1)?.line.service.end ?? 0) === service.end_us;
  return isWhole(charge) && isInvoiced;
}

/**
 * Whether the charge can be cut. A line that shares cost, free units or a commitment with its chain cannot: its share is known only at the
 * end of the chain.
 */
export function canBeCut({ chained }: ExportServiceCharge): boolean {
  if (!chained) return true;
  const { rule, lines, level_since } = chained.chain;
  const isOwn =
    rule === 'additive' || (rule === 'integral' && lines.length === 1 && level_since === chained.service.start);
  return isOwn && lines.every(({ item }) => !item.allowances?.length && !item.commitment);
}

export function cutAt({ item, service, subscription, chained }: ExportServiceCharge, at_us: Microseconds): UsageCut {
  const since_us = countingStart(item.reset_usage, service.start_us, toUs(subscription.start_ms));
  return { item, since_us, at_us, service, chained };
}

function isWhole({ service, intervals }: ExportServiceCharge): boolean {
  const [only] = intervals;
  return intervals.length === 1 && only!.start_us === service.start_us && only!.end_us === service.end_us;
}

type ExportAnswers = { readonly query: UsageExportQuery; readonly measured: (cut: UsageCut) => ChargedAmounts };

export function buildRecords(charge: ExportServiceCharge, { query, measured }: ExportAnswers): ExportedChargeUsage[] {
  const { service, intervals, partial, lines } = charge;
  const at = (at_us: Microseconds) => (at_us === service.start_us ? NOTHING_CHARGED : measured(cutAt(charge, at_us)));
  const [own, ...corrections] = lines;
  const wholes = (some: readonly CountedInvoiceLine[], start_us = service.start_us) =>
    some.flatMap(({ line, added }) => {
      const end_us = toUs(line.service.end);
      return endsIn(query, end_us) ? buildRecord(charge, { start_us, end_us, added, line }) : [];
    });
  if (isFullyInvoiced(charge)) return wholes([...partial, ...lines]);
  if (charge.chained && !canBeCut(charge)) {
    const until = toChargedAmounts(charge.chained);
    return [...wholes([...partial, ...lines]), ...buildRestRecords(charge, { query, at: () => until })];
  }
  if (!isSame(charge, at)) return [...wholes([...partial, ...lines]), ...buildRestRecords(charge, { query, at })];
  const parts = intervals
    .flatMap((interval) => cutAtInvoices(interval, partial))
    .flatMap((interval) => {
      const added = computeAddedCharge(at(interval.start_us), at(interval.end_us));
      const invoiced = partial.find(({ line }) => toUs(line.service.end) >= interval.end_us) ?? own;
      return buildRecord(charge, { ...interval, added, line: invoiced?.line ?? null });
    });
  return [...parts, ...wholes(corrections)];
}

function endsIn({ start_us, end_us }: ChargeInterval, at_us: Microseconds): boolean {
  return at_us > start_us && at_us <= end_us;
}

/** Cuts the interval also at the end of each line of progressive billing. */
function cutAtInvoices({ start_us, end_us }: ChargeInterval, partial: readonly CountedInvoiceLine[]): ChargeInterval[] {
  const ends = [...new Set(partial.map(({ line }) => toUs(line.service.end)))];
  const bounds = [start_us, ...ends.filter((at_us) => at_us > start_us && at_us < end_us), end_us];
  return bounds.slice(1).map((end_us, index) => ({ start_us: bounds[index]!, end_us }));
}

/** Whether the current measurements equal the invoiced amounts; only then can they be split. */
function isSame(
  { service, partial, lines }: ExportServiceCharge,
  at: (at_us: Microseconds) => ChargedAmounts,
): boolean {
  let invoiced = NOTHING_CHARGED;
  const [own] = lines;
  const ended = [
    ...partial.map((one) => [one, toUs(one.line.service.end)] as const),
    ...(own ? [[own, service.end_us] as const] : []),
  ];
  return ended.every(([{ added }, end_us], index) => {
    invoiced = {
      ...invoiced,
      quantity: invoiced.quantity.plus(added.quantity),
      amount: invoiced.amount.plus(added.amount),
    };
    if (ended[index + 1]?.[1] === end_us) return true;
    const measured = at(end_us);
    return invoiced.amount.eq(measured.amount) && invoiced.quantity.eq(measured.quantity);
  });
}

/** Builds records for the part of a charge that progressive billing has not invoiced, if the preview does not contain it. */
function buildRestRecords(
  charge: ExportServiceCharge,
  { query, at }: { query: UsageExportQuery; at: (at_us: Microseconds) => ChargedAmounts },
) {
  const { service, partial, lines } = charge;
  const until = toUs(partial.at(-1)?.line.service.end ?? 0);
  if (lines.length > 0 || until === service.end_us || !endsIn(query, service.end_us)) return [];
  const added = partial.reduce((left, { added }) => computeAddedCharge(added, left), at(service.end_us));
  return buildRecord(charge, { ...service, added, line: null });
}

type AddedCharge = ChargeInterval & { added: ChargedAmounts; line: InvoicedUsageLine | null };

function buildRecord(
  { item }: ExportServiceCharge,
  { start_us, end_us, added, line }: AddedCharge,
): ExportedChargeUsage[] {
  if (isNothing(added)) return [];
  const { external_customer_id, meter, subscription, line_item } = item;
  const { quantity: usage, amount, event_count } = added;
  const charge = {
    line_item_id: item.id,
    subscription_id: subscription.id,
    plan: line?.plan_display_name ?? line_item.plan_display_name ?? '',
    line: line?.display_name ?? item.display_name,
    price: priceText((line?.computed_from?.price as PriceTerms | null | undefined) ?? item.price),
    amount,
    currency: subscription.currency,
    invoice: line?.invoice ?? null,
  };
  return [{ external_customer_id, meter, usage, event_count, start_us, end_us, charge }];
}
