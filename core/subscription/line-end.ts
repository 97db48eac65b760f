/**
 * When a line ends, and whether it does by itself (docs/rules/subscriptions.md, "Prices that the plan gets later"): what ends because its
 * price does is followed by the price that the plan sells then, what ends by itself by nothing.
 */
import type { Price } from '../price/record.ts';
import { formatMs, toInstant } from '../time/instant.ts';

export type LineItemEnd = {
  readonly end_date: string | null;
  /** Null of a line that does not end. */
  readonly ends_with_price: boolean | null;
};

/** `own` are the ends that it has beside that of its price: its own, and that of the subscription. */
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
