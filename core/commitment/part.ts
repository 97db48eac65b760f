/**
 * Which part of its commitment a charge is about (docs/rules/commitments.md, "Shorter periods" and "Over several periods"): one
 * of a billing period has the share of it that an advance charge would have; one of a longer term is not cut, and goes on
 * from what the term's earlier charges have drawn.
 */
import { type BilledItem, type BilledSubscription, sharesWithin } from '../billing/charges.ts';
import { Decimal, sumOf } from '../decimal.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { CommitmentPart, LineCommitment } from './line.ts';
import { termOf } from './term.ts';

/** A usage charge that stands on an invoice. */
export type RecordedUsage = {
  readonly item_id: string;
  readonly service: Period;
  /** Before a commitment. */
  readonly base_amount: Decimal;
};

export type PartQuestion = {
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
};

type CommittedItem = BilledItem & {
  readonly commitment?: LineCommitment | null;
  /** Where other lines share its terms. */
  readonly committed_lines?: CommittedLines | null;
};

export function committedLinesOf({ committed_lines, id, start_ms, end_ms }: CommittedItem): CommittedLines {
  return committed_lines ?? { since: start_ms, end_ms, item_ids: [id] };
}

/** Whether a commitment over several periods goes on where a line follows another: as long as its terms are as long. */
export function goesOn(before: LineCommitment | null | undefined, after: LineCommitment | null | undefined): boolean {
  return Boolean(before?.duration) && before?.duration === after?.duration;
}

/** The share is that of each of the item's periods that lies in the time, so that two whole periods have the amount twice. */
export function commitmentPart(item: CommittedItem, service: Period, question: PartQuestion): CommitmentPart {
  const duration = item.commitment?.duration ?? null;
  if (duration === null)
    return { share: sharesWithin(service, item, question.subscription), used: new Decimal(0), is_last: true };
  const { subscription, recorded, ends_at } = question;
  const { since, item_ids, end_ms } = committedLinesOf(item);
  const rule = { since, duration, timezone: subscription.timezone };
  const term = termOf(service.start, rule);
  const before = recorded.filter(
    (one) => item_ids.includes(one.item_id) && one.service.end <= service.start && one.service.start >= term.start,
  );
  const end = Math.min(end_ms ?? Infinity, subscription.end_ms ?? Infinity, ends_at ?? Infinity);
  return {
    share: new Decimal(1),
    used: sumOf(before.map(({ base_amount }) => base_amount)),
    is_last: Math.min(term.end, end) <= service.end,
    since: term.start,
  };
}

/**
 * What is charged together, each after what was used before it: what lines under one commitment draw in one period, they draw one
 * after the other. The answers are in the order of the charges.
 */
export function drawnInTurn<One extends { readonly item: CommittedItem; readonly service: Period }, Line>(
  charges: readonly One[],
  recorded: readonly RecordedUsage[],
  {
    lineOf,
    drawnBy,
  }: { lineOf: (one: One, recorded: readonly RecordedUsage[]) => Line; drawnBy: (line: Line) => Decimal },
): Line[] {
  const drawn = [...recorded];
  const lines = new Map<One, Line>();
  for (const one of [...charges].sort((a, b) => a.service.start - b.service.start)) {
    const line = lineOf(one, drawn);
    lines.set(one, line);
    const { item, service } = one;
    if (item.commitment?.duration) drawn.push({ item_id: item.id, service, base_amount: drawnBy(line) });
  }
  return charges.map((one) => lines.get(one)!);
}
