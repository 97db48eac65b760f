/**
 * Lines under the commitment of their subscription (docs/rules/commitments.md, "Of a subscription"). Each usage line has the amount within
 * the commitment; a separate line has its overage. At the end of the term, one line has the true-up.
 */

import { Decimal, ZERO } from '../foundation/decimal.ts';
import { groupBy } from '../foundation/group-by.ts';
import { formatMs, type Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import { serviceStart } from './charges.ts';
import { type CommitmentInfo, computedText } from './commitments/info.ts';
import type { RecordedUsage } from './commitments/part.ts';
import { NOTHING } from './commitments/pool.ts';
import {
  computePool,
  computeTrueUp,
  deriveServiceTerm,
  endsWith,
  type PoolFacts,
  type PoolShare,
  type SubscriptionCommitment,
  shareOut,
} from './commitments/subscription.ts';
import type { ComputedFrom } from './computed-from.ts';
import type { LineAmount, PlannedLine, PricedItem } from './line-amount.ts';
import { buildQuantityFields } from './quantity-fields.ts';

type TermUsage = NonNullable<ComputedFrom['of_term']>;

/** Cost of a usage line before the commitment. */
export function toBaseAmount({ computed_from, amount }: Pick<LineAmount, 'computed_from' | 'amount'>): Decimal {
  return computed_from.base_amount ? new Decimal(computed_from.base_amount) : amount;
}

/** Returns every line; a usage line above the commitment is followed by its overage line. */
export function applySubscriptionCommitment<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  facts: PoolFacts,
  currency: string,
): PlannedLine<Item>[] {
  const usage = lines.filter(({ item }) => item.price_type === 'USAGE');
  const shares = new Map<PlannedLine<Item>, PoolShare & { of_term: TermUsage }>();
  const in_order = facts.commitment.duration === null;
  for (const of of groupBy(usage, ({ service }) => deriveServiceTerm(service, facts).start).values()) {
    const term = deriveServiceTerm(of[0].service, facts);
    const pool = computePool(term, facts);
    const of_term = { used: pool.used.toFixed(), committed: pool.amount.toFixed(), since: formatMs(term.start) };
    const shared = shareOut(
      of.map(({ amount }) => amount),
      pool,
      { currency, in_order },
    );
    for (const [index, line] of of.entries()) shares.set(line, { ...shared.shares[index]!, of_term });
  }
  return lines.flatMap((line) => {
    const shared = shares.get(line);
    return shared ? splitByCommitment(line, shared, facts.commitment) : [line];
  });
}

/**
 * Returns the line with the part of its cost within the commitment, and a second line with the part above, if there is one. The second line
 * has the measured units only if the whole cost is above the commitment.
 */
export function splitByCommitment<Line extends LineAmount & { display_name: string }>(
  line: Line,
  { within, above, overage, of_term }: PoolShare & { readonly of_term?: TermUsage },
  commitment: SubscriptionCommitment,
): Line[] {
  const from_pool = { ...(of_term ? { of_term } : {}), drawn_from: 'subscription' as const };
  const base_amount = line.amount.toFixed();
  const info = (drawn: { utilized: Decimal; overage: Decimal }) =>
    toCommitmentInfo(commitment, { ...drawn, true_up: ZERO });
  // The measured units are on one of the two lines, because they cannot be split into units within and above the commitment.
  const quantity = within.isZero() && !above.isZero() ? line.quantity : ZERO;
  const first = {
    ...line,
    quantity: line.quantity.minus(quantity),
    amount: within,
    commitment_info: info({ utilized: within, overage: ZERO }),
    computed_from: { ...line.computed_from, base_amount, ...from_pool },
  };
  if (above.isZero()) return [first];
  const reason = `overage: above the commitment of the subscription, × ${commitment.overage_factor.toFixed()}`;
  const second = {
    ...line,
    is_overage: true,
    display_name: `${line.display_name} (overage)`,
    quantity,
    amount: overage,
    ...buildQuantityFields(() => null),
    commitment_info: info({ utilized: ZERO, overage }),
    computed_from: {
      ...line.computed_from,
      base_amount: '0',
      kind: 'overage' as const,
      reason,
      ...from_pool,
    },
  };
  return [first, second];
}

function toCommitmentInfo(
  { amount, overage_factor, true_up, duration }: SubscriptionCommitment,
  computed: { utilized: Decimal; overage: Decimal; true_up: Decimal },
): CommitmentInfo {
  return {
    type: 'amount',
    amount: amount.toFixed(),
    quantity: null,
    duration,
    overage_factor: overage_factor.toFixed(),
    true_up_enabled: true_up,
    is_windowed: false,
    ...computedText(computed),
  };
}

/** Display name of the true-up line. */
export const TRUE_UP = 'Commitment (true-up)';

type TrueUpInput<Item extends PricedItem> = {
  readonly facts: PoolFacts;
  readonly currency: string;
  readonly period: Period;
  /** End of the subscription, if the planned invoice is that of its cancellation. */
  readonly ends_at: Milliseconds | null;
  readonly before: readonly PlannedLine<Item>[];
  readonly items: readonly Item[];
};

/** Charges the shortfall if the period ends the term. */
export function planTrueUp<Item extends PricedItem>(input: TrueUpInput<Item>): PlannedLine<Item>[] {
  const { facts, currency, period, before, ends_at } = input;
  const [item] = input.items;
  const term = deriveServiceTerm(period, facts);
  if (item === undefined || !endsWith(term, period, [facts.subscription.end_ms, ends_at])) return [];
  const pool = computePool(term, { ...facts, recorded: [...facts.recorded, ...toRecordedUsage(before)] });
  const amount = computeTrueUp(pool, facts.commitment, currency);
  if (amount === null) return [];
  const computed = { ...NOTHING, true_up: amount };
  return [
    {
      item,
      is_true_up: true,
      service: { start: Math.max(term.start, serviceStart(facts.subscription)), end: period.end },
      display_name: TRUE_UP,
      parent_line_item_id: null,
      quantity: new Decimal(1),
      amount,
      commitment_info: toCommitmentInfo(facts.commitment, computed),
      computed_from: {
        kind: 'true_up',
        of_term: { used: pool.used.toFixed(), committed: pool.amount.toFixed(), since: formatMs(term.start) },
        reason: `true_up: ${pool.used.toFixed()} of ${pool.amount.toFixed()} were used`,
        base_amount: pool.used.toFixed(),
      },
    },
  ];
}

/** Commitment draws of lines that are not stored yet. */
export function toRecordedUsage<Item extends PricedItem>(lines: readonly PlannedLine<Item>[]): RecordedUsage[] {
  return lines
    .filter(({ item, is_true_up }) => item.price_type === 'USAGE' && !is_true_up)
    .map((line) => ({ item_id: line.item.id, service: line.service, base_amount: toBaseAmount(line) }));
}
