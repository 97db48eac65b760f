/**
 * Active interval of each price of a cost sheet. A price ends at its end date, and a successor begins at its start date. The first price
 * also applies to earlier usage, because costs are often recorded after the usage (docs/rules/costs.md, "Which price").
 */
import { groupBy } from '../../foundation/group-by.ts';
import { type Microseconds, toInstant, toUs } from '../../foundation/time/instant.ts';

type DatedPrice = {
  readonly id: string;
  readonly parent_price_id?: string | null | undefined;
  readonly start_date?: string | null | undefined;
  readonly end_date?: string | null | undefined;
};

export type ActivePrice<P> = { readonly price: P; readonly start_us: Microseconds; readonly end_us: Microseconds };

export function computeActivePrices<P extends DatedPrice>(
  prices: readonly P[],
  range: { readonly start_us: Microseconds; readonly end_us: Microseconds },
): ActivePrice<P>[] {
  return [...groupBy(prices, toRootPriceId).values()].flatMap((line) => {
    const inOrder = line.toSorted((a, b) => toStartMicroseconds(a) - toStartMicroseconds(b));
    return inOrder.flatMap((price, index) => {
      const start_us = Math.max(range.start_us, index === 0 ? Number.NEGATIVE_INFINITY : toStartMicroseconds(price));
      const end_us = Math.min(range.end_us, price.end_date ? toUs(toInstant(price.end_date)) : Infinity);
      return start_us < end_us ? [{ price, start_us, end_us }] : [];
    });
  });
}

function toRootPriceId({ id, parent_price_id }: DatedPrice): string {
  return parent_price_id || id;
}

/** Lists `price` with its predecessors and successors. */
export function listPriceLineage<P extends DatedPrice>(price: DatedPrice, prices: readonly P[]): P[] {
  return prices.filter((other) => toRootPriceId(other) === toRootPriceId(price));
}

function toStartMicroseconds({ start_date }: DatedPrice): Microseconds {
  return start_date ? toUs(toInstant(start_date)) : Number.NEGATIVE_INFINITY;
}
