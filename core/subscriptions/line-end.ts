/**
 * Derives when a line ends, and whether its price or its own date ends it (docs/rules/subscriptions.md, "Prices that
 * the plan gets later"). If the price ends it, the plan's next price follows. If its own date ends it, nothing follows.
 */
import type { Price } from '../catalog/price/record.ts';
import { formatMs, toInstant } from '../foundation/time/instant.ts';

export type LineItemEnd = {
  readonly end_date: string | null;
  /** Whether the price ends the line; null if the line does not end. */
  readonly ends_with_price: boolean | null;
};

/** Computes the end of a line. `own` are the end dates of the line and of the subscription. */
export function computeLineEnd(
  { end_date }: Pick<Price, 'end_date'>,
  own: readonly (string | null | undefined)[],
): LineItemEnd {
  const others = own.flatMap((end) => (end ? [toInstant(end)] : []));
  const ends = end_date ? [...others, toInstant(end_date)] : others;
  if (ends.length === 0) return { end_date: null, ends_with_price: null };
  const end = Math.min(...ends);
  return { end_date: formatMs(end), ends_with_price: !others.includes(end) };
}
