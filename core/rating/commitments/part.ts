/**
 * Computes the part of a commitment that applies to a charge (docs/rules/commitments.md, "Shorter periods" and "Over several periods"). A
 * commitment for one billing period is prorated like an advance charge, and consecutive lines with an equal commitment share it. A
 * commitment for a longer term is never reduced, and continues from the draws of the term's earlier charges.
 */

import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { type BilledItem, type BilledSubscription, computeSharedService, computeSharesWithin } from '../charges.ts';
import type { CommitmentPart, LineCommitment } from './line.ts';
import { computeTerm } from './term.ts';

/** A usage charge on an invoice. */
export type RecordedUsage = {
  readonly item_id: string;
  readonly service: Period;
  /** Amount before the commitment. */
  readonly base_amount: Decimal;
};

export type CommitmentPartInput = {
  readonly subscription: BilledSubscription;
  readonly recorded: readonly RecordedUsage[];
  /** End of the subscription if the invoice of a cancellation is computed; null if the subscription continues. */
  readonly ends_at?: Milliseconds | null;
};

/** Consecutive lines that draw from one commitment, or continue its term. */
export type CommittedLines = {
  readonly since: Milliseconds;
  /** End of the last line; null if it has no end. */
  readonly end_ms: Milliseconds | null;
  readonly item_ids: readonly string[];
  readonly active_intervals: readonly Pick<BilledItem, 'start_ms' | 'end_ms'>[];
};

type CommittedItem = BilledItem & {
  readonly commitment?: LineCommitment | null;
  /** Set if other lines share the terms of this line's commitment. */
  readonly committed_lines?: CommittedLines | null;
};

export function toCommittedLines({ committed_lines, id, start_ms, end_ms }: CommittedItem): CommittedLines {
  return committed_lines ?? { since: start_ms, end_ms, item_ids: [id], active_intervals: [{ start_ms, end_ms }] };
}

/** Whether a line continues the commitment term of the line before it: both terms must have the same duration. */
export function isTermContinued(
  before: LineCommitment | null | undefined,
  after: LineCommitment | null | undefined,
): boolean {
  return Boolean(before?.duration) && before?.duration === after?.duration;
}

/** Whether consecutive lines inside a billing period share one commitment: it must be equal on both. */
export function isOneCommitment(before: LineCommitment | null | undefined, after: LineCommitment | null | undefined) {
  if (!before || !after || before.windows || after.windows || before.duration || after.duration) return false;
  return (
    before.type === after.type &&
    before.true_up === after.true_up &&
    before.overage_factor.eq(after.overage_factor) &&
    before.value?.toFixed() === after.value?.toFixed()
  );
}

/** Interval in which all charges draw from one committed amount, and the share of the commitment that applies in it. */
type DrawPeriod = Period & { readonly share: Decimal; readonly is_term: boolean };

/**
 * Derives the interval of the amount that a charge draws from: a term, or a billing period with several consecutive lines. Returns null if
 * the charge has an amount of its own.
 */
export function deriveDrawPeriod(
  item: CommittedItem,
  service: Period,
  { subscription, ends_at }: Omit<CommitmentPartInput, 'recorded'>,
): DrawPeriod | null {
  const { since, active_intervals: activeIntervals } = toCommittedLines(item);
  const duration = item.commitment?.duration ?? null;
  if (duration !== null) {
    const term = computeTerm(service.start, { since, duration, timezone: subscription.timezone });
    return { ...term, share: new Decimal(1), is_term: true };
  }
  if (activeIntervals.length < 2) return null;
  const end_ms = Math.min(subscription.end_ms ?? Infinity, ends_at ?? Infinity);
  const ended = { ...subscription, end_ms: Number.isFinite(end_ms) ? end_ms : null };
  const { services, share } = computeSharedService(service.start, {
    item,
    siblings: activeIntervals,
    subscription: ended,
  });
  // A queried interval that is not exactly the service interval of one line has its own share of the commitment.
  const isOne = services.some(({ start, end }) => start === service.start && end === service.end);
  if (services.length < 2 || !isOne) return null;
  const [starts, ends] = [services.map(({ start }) => start), services.map(({ end }) => end)];
  return { start: Math.min(...starts), end: Math.max(...ends), share, is_term: false };
}

/** The share of the commitment is the sum over the item's periods in the interval: two whole periods have twice the committed amount. */
export function commitmentPart(item: CommittedItem, service: Period, input: CommitmentPartInput): CommitmentPart {
  const { subscription, recorded, ends_at } = input;
  const shared = deriveDrawPeriod(item, service, input);
  if (shared === null)
    return {
      share: computeSharesWithin(service, item, subscription),
      used: new Decimal(0),
      is_last: true,
      is_term: false,
    };
  const { item_ids, end_ms } = toCommittedLines(item);
  const before = recorded.filter(
    (one) => item_ids.includes(one.item_id) && one.service.end <= service.start && one.service.start >= shared.start,
  );
  const end = Math.min(end_ms ?? Infinity, subscription.end_ms ?? Infinity, ends_at ?? Infinity);
  return {
    share: shared.share,
    used: sumDecimals(before.map(({ base_amount }) => base_amount)),
    is_last: Math.min(shared.end, end) <= service.end,
    is_term: shared.is_term,
    ...(shared.is_term ? { since: shared.start } : {}),
  };
}

/**
 * Prices charges in order of time: lines under one commitment draw from its amount one after the other. Results are in the order of
 * `charges`.
 */
export function drawInOrder<One extends { readonly item: CommittedItem; readonly service: Period }, Line>(
  charges: readonly One[],
  recorded: readonly RecordedUsage[],
  {
    priceLine,
    toDrawnAmount,
  }: { priceLine: (one: One, recorded: readonly RecordedUsage[]) => Line; toDrawnAmount: (line: Line) => Decimal },
): Line[] {
  const drawn = [...recorded];
  const lines = new Map<One, Line>();
  for (const one of [...charges].sort((a, b) => a.service.start - b.service.start)) {
    const line = priceLine(one, drawn);
    lines.set(one, line);
    const { item, service } = one;
    if (item.commitment?.duration || item.committed_lines)
      drawn.push({ item_id: item.id, service, base_amount: toDrawnAmount(line) });
  }
  return charges.map((one) => lines.get(one)!);
}
