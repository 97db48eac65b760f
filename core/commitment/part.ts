/**
 * Which part of its commitment a charge is about (docs/rules/commitments.md, "Shorter periods" and "Over several periods"): one
 * of a billing period has the share of it that an advance charge would have, and is one of all lines that follow one another in it;
 * one of a longer term is not cut, and goes on from what the term's earlier charges have drawn.
 */
import {
  type BilledItem,
  type BilledSubscription,
  computeSharedService,
  computeSharesWithin,
} from '../billing/charges.ts';
import { Decimal, sumDecimals } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { CommitmentPart, LineCommitment } from './line.ts';
import { computeTerm } from './term.ts';

/** A usage charge that stands on an invoice. */
export type RecordedUsage = {
  readonly item_id: string;
  readonly service: Period;
  /** Before a commitment. */
  readonly base_amount: Decimal;
};

export type CommitmentPartInput = {
  readonly subscription: BilledSubscription;
  readonly recorded: readonly RecordedUsage[];
  /** Where the subscription is ended by what is computed; null where it goes on. */
  readonly ends_at?: Milliseconds | null;
};

/** Lines that follow one another under one commitment: its terms are theirs together. */
export type CommittedLines = {
  readonly since: Milliseconds;
  /** Where the last of them ends; null is open. */
  readonly end_ms: Milliseconds | null;
  readonly item_ids: readonly string[];
  /** From when to when each of them lives. */
  readonly active_intervals: readonly Pick<BilledItem, 'start_ms' | 'end_ms'>[];
};

type CommittedItem = BilledItem & {
  readonly commitment?: LineCommitment | null;
  /** Where other lines share its terms. */
  readonly committed_lines?: CommittedLines | null;
};

export function toCommittedLines({ committed_lines, id, start_ms, end_ms }: CommittedItem): CommittedLines {
  return committed_lines ?? { since: start_ms, end_ms, item_ids: [id], active_intervals: [{ start_ms, end_ms }] };
}

/** Whether a commitment over several periods goes on where a line follows another: as long as its terms are as long. */
export function isTermContinued(
  before: LineCommitment | null | undefined,
  after: LineCommitment | null | undefined,
): boolean {
  return Boolean(before?.duration) && before?.duration === after?.duration;
}

/** Whether lines that follow one another inside a billing period have one commitment: as long as it is the same. */
export function isOneCommitment(before: LineCommitment | null | undefined, after: LineCommitment | null | undefined) {
  if (!before || !after || before.windows || after.windows || before.duration || after.duration) return false;
  return (
    before.type === after.type &&
    before.true_up === after.true_up &&
    before.overage_factor.eq(after.overage_factor) &&
    before.value?.toFixed() === after.value?.toFixed()
  );
}

/** The time in which charges draw from one amount, and how much of that is committed to in it. */
export type DrawPeriod = Period & { readonly share: Decimal; readonly is_term: boolean };

/** A term, or a billing period in which several lines follow one another; null where a charge draws from an amount of its own. */
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
  // A question about any other stretch of time has the share of that.
  const isOne = services.some(({ start, end }) => start === service.start && end === service.end);
  if (services.length < 2 || !isOne) return null;
  const [starts, ends] = [services.map(({ start }) => start), services.map(({ end }) => end)];
  return { start: Math.min(...starts), end: Math.max(...ends), share, is_term: false };
}

/** The share is that of each of the item's periods that lies in the time, so that two whole periods have the amount twice. */
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
 * What is charged together, each after what was used before it: what lines under one commitment draw in one period, they draw one
 * after the other. The answers are in the order of the charges.
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
