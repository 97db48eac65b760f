/** Prices usage lines in a queried interval like an invoice of exactly this interval (docs/rules/usage.md, "One number"). */
import type { ServedLine } from './chains/chains-within.ts';
import { ChainCharges, chargeKey } from './chains/charge-chains.ts';
import type { BilledSubscription } from './charges.ts';
import { commitmentPart, drawInOrder, type RecordedUsage } from './commitments/part.ts';
import { toBaseAmount } from './committed-lines.ts';
import { type LineAmount, type MeasuredUsage, type PricedItem, priceUsageCharge } from './line-amount.ts';

type ServedUsage = {
  /** Measured usage of each line, by `chargeKey`. */
  readonly usage: ReadonlyMap<string, MeasuredUsage>;
  readonly subscription: BilledSubscription;
  readonly currency: string;
  /** Usage that invoices have drawn from commitments. */
  readonly recorded: readonly RecordedUsage[];
};

/** The amounts of the lines, in the order of `served`. */
export function priceServedLines<Item extends PricedItem>(
  served: readonly ServedLine<Item>[],
  { usage, subscription, currency, recorded }: ServedUsage,
): LineAmount[] {
  const chains = new ChainCharges<Item>(usage);
  return drawInOrder(served, recorded, {
    priceLine: (one, before) => {
      const { item, service, usage_window: window } = one;
      const measured = usage.get(chargeKey(item.id, service))!;
      const part = item.commitment ? commitmentPart(item, service, { subscription, recorded: before }) : undefined;
      return chains.price(one, (chained) => priceUsageCharge(item, window, { measured, currency, part, chained }));
    },
    toDrawnAmount: toBaseAmount,
  });
}
