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

type CommittedItem = BilledItem & { readonly commitment?: LineCommitment | null };

/** The share is that of each of the item's periods that lies in the time, so that two whole periods have the amount twice. */
export function commitmentPart(item: CommittedItem, service: Period, question: PartQuestion): CommitmentPart {
  const duration = item.commitment?.duration ?? null;
  if (duration === null)
    return { share: sharesWithin(service, item, question.subscription), used: new Decimal(0), is_last: true };
  const { subscription, recorded, ends_at } = question;
  const rule = { since: item.start_ms, duration, timezone: subscription.timezone };
  const term = termOf(service.start, rule);
  const before = recorded.filter(
    (one) => one.item_id === item.id && one.service.end <= service.start && one.service.start >= term.start,
  );
  const end = Math.min(item.end_ms ?? Infinity, subscription.end_ms ?? Infinity, ends_at ?? Infinity);
  return {
    share: new Decimal(1),
    used: sumOf(before.map(({ base_amount }) => base_amount)),
    is_last: Math.min(term.end, end) <= service.end,
  };
}
