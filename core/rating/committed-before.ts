/**
 * Recomputes charges on final invoices whose usage has changed since, under their commitments (docs/rules/commitments.md, "Late events").
 * If charges draw from one committed amount, each costs the amount that it adds to the cost of all. Draws of the current invoice are
 * included.
 */

import { sumDecimals, ZERO } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import type { Period } from '../foundation/time/period.ts';
import { committedAmount } from './commitments/line.ts';
import {
  type CommitmentPartInput,
  commitmentPart,
  deriveDrawPeriod,
  type RecordedUsage,
  toCommittedLines,
} from './commitments/part.ts';
import type { CommitmentPool } from './commitments/pool.ts';
import { computePool, deriveServiceTerm, type PoolFacts } from './commitments/subscription.ts';
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
 * Committed amount of a term with the draws of all lines. Once the last period of the term is invoiced, any shortfall was charged as a
 * true-up. A later decrease of usage then never lowers the charge below the committed amount.
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

/**
 * Committed amount that several lines draw from, and their draws: lines of a term, or consecutive lines of a period. Once the term or
 * period is over, any true-up was charged. Null if a single line draws from it.
 */
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
