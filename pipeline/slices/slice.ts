/** Effect of a slice of the log: all rows to write, and the counts for the ledger. */

import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { EventOutcome, OutcomeKind } from '../../core/metering/event/outcome.ts';
import type { UncountedReason } from '../../core/metering/event/uncounted.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import type { CorrectionMessage } from '../../storage/progress/corrections.ts';
import type { RejectionArrival } from '../../storage/progress/rejection-arrivals.ts';
import type { SliceCounts } from '../../storage/progress/slices.ts';
import type { ReadEvent } from '../steps/read-events.ts';

export type PreparedSlice = {
  /** The records from `from` up to `to` (exclusive), without a gap. */
  readonly records: readonly LogRecord[];
  readonly from: bigint;
  readonly to: bigint;
  /** Events to store: new and readable. */
  readonly events: readonly ReadEvent[];
  /** Outcomes of the events that are not stored, and of stored events that a meter cannot use. */
  readonly outcomes: readonly EventOutcome[];
  /** Events that the stores reject; they are dead letters in `outcomes`. */
  readonly rejected_events: readonly ReadEvent[];
  /** Number of events that feed no meter. */
  readonly unmatched: number;
  /** The first of them of each environment. */
  readonly first_unmatched: readonly ReadEvent[];
  readonly bucket_rows: readonly BucketRow[];
  /** Corrections of events that precede them in the log, possibly in this slice. */
  readonly corrections: readonly LoggedCorrection[];
};

/** A correction with its offset in the log. */
type LoggedCorrection = { readonly offset: bigint; readonly correction_id: string };

export function isCorrection({ kind, body }: LogRecord): boolean {
  return kind === 'control' && body.includes('"type":"correction"');
}

export function listLoggedCorrections(records: readonly LogRecord[]): LoggedCorrection[] {
  return records.filter(isCorrection).map(({ offset, body }) => {
    const { correction_id } = JSON.parse(body.toString('utf8')) as CorrectionMessage;
    return { offset, correction_id };
  });
}

export function listEventRecords(records: readonly LogRecord[]): LogRecord[] {
  return records.filter(({ kind }) => kind === 'events');
}

export function countOutcomes({ outcomes }: Pick<PreparedSlice, 'outcomes'>): Record<OutcomeKind, number> {
  const counts = { duplicate: 0, conflict: 0, dead_letter: 0, unusable: 0 };
  for (const { outcome } of outcomes) counts[outcome]++;
  return counts;
}

/** Counts the events of a slice; each event is in exactly one of these counts. */
export function countSlice(slice: PreparedSlice): SliceCounts {
  const { records, events } = slice;
  const sent = records.reduce((sum, record) => sum + record.event_count, 0);
  const { duplicate: duplicates, conflict: conflicts, dead_letter: dead_letters } = countOutcomes(slice);
  const unread = sent - events.length - duplicates - conflicts - dead_letters;
  return { events: sent, stored: events.length, duplicates, conflicts, dead_letters, unread };
}

/** Environments and reasons for which events of the slice are not counted. */
export function listRejectionArrivals({
  outcomes,
  first_unmatched,
}: Pick<PreparedSlice, 'outcomes' | 'first_unmatched'>): RejectionArrival[] {
  const arrivals = new Map<string, RejectionArrival>();
  const add = (reason: UncountedReason, scope: Scope, since_us: Microseconds) => {
    const key = `${scopeKey(scope)} ${reason}`;
    if ((arrivals.get(key)?.since_us ?? Infinity) > since_us) arrivals.set(key, { scope, reason, since_us });
  };
  for (const outcome of outcomes) {
    const { outcome: reason, received_at_us } = outcome;
    if (reason !== 'duplicate') add(reason, outcome, received_at_us);
  }
  for (const { scope, received_at_us } of first_unmatched) add('unmatched', scope, received_at_us);
  return [...arrivals.values()];
}
