/**
 * Commitments of charges that are on final invoices, when their usage has changed since (docs/rules/commitments.md, "Late
 * events"): what is drawn from one amount together with other charges costs what it adds to what all of them have drawn, those
 * of the invoice that is being made among them.
 */

import { committedAmount } from '../commitment/line.ts';
import {
  type CommitmentPartInput,
  commitmentPart,
  deriveDrawPeriod,
  type RecordedUsage,
  toCommittedLines,
} from '../commitment/part.ts';
import type { CommitmentPool } from '../commitment/pool.ts';
import { computePool, deriveServiceTerm, type PoolFacts } from '../commitment/subscription.ts';
import { sumDecimals, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { Period } from '../time/period.ts';
import { toRecordedUsage } from './committed-lines.ts';
import type { PriorCommitments } from './late-events.ts';
import type { PlannedLine, PricedItem } from './line-amount.ts';

export function buildPriorCommitments<Item extends PricedItem>(
  input: CommitmentPartInput,
  facts: PoolFacts | null,
  before: readonly PlannedLine<Item>[],
): PriorCommitments<Item> {
  const recorded: RecordedUsage[] = [...input.recorded, ...toRecordedUsage(before)];
  return {
    derivePart: (item, service) => (item.commitment ? commitmentPart(item, service, input) : undefined),
    derivePool(item, service) {
      if (facts !== null) return sharedPool(service, facts, { recorded, invoiced: input.recorded });
      return item.commitment ? linePool(item, service, { ...input, recorded }) : null;
    },
    recordDraw: (item, service, base_amount) => void recorded.push({ item_id: item.id, service, base_amount }),
  };
}

/**
 * What all lines have drawn in a term. Once its last period is invoiced, what was lacking is paid, or nothing was: what is taken back then
 * leaves what was committed to.
 */
function sharedPool(
  service: Period,
  facts: PoolFacts,
  { recorded, invoiced }: { recorded: readonly RecordedUsage[]; invoiced: readonly RecordedUsage[] },
): CommitmentPool {
  const term = deriveServiceTerm(service, facts);
  const pool = computePool(term, { ...facts, recorded });
  const ends = Math.min(term.end, facts.subscription.end_ms ?? Infinity);
  const isInvoiced = invoiced.some(
    (one) => one.service.end >= ends && deriveServiceTerm(one.service, facts).start === term.start,
  );
  return { ...pool, is_trued_up: pool.is_trued_up || (facts.commitment.true_up && isInvoiced) };
}

/** What lines have drawn in a term, or one behind the other in a period; once that is over, what was lacking is paid. Null of one alone. */
function linePool(
  item: PricedItem,
  service: Period,
  { subscription, recorded }: CommitmentPartInput,
): CommitmentPool | null {
  const shared = deriveDrawPeriod(item, service, { subscription });
  if (shared === null) return null;
  const { type, value, overage_factor, true_up } = item.commitment!;
  const { item_ids, end_ms } = toCommittedLines(item);
  const drawn = recorded.filter(
    (one) => item_ids.includes(one.item_id) && one.service.start >= shared.start && one.service.start < shared.end,
  );
  const ends = Math.min(shared.end, end_ms ?? Infinity, subscription.end_ms ?? Infinity);
  const whole = value === null ? ZERO : committedAmount(type, value, item.price);
  return {
    amount: shared.is_term ? whole : roundMoney(whole.times(shared.share), item.price.currency),
    overage_factor,
    used: sumDecimals(drawn.map(({ base_amount }) => base_amount)),
    is_trued_up: true_up && drawn.some((one) => one.service.end >= ends),
  };
}
