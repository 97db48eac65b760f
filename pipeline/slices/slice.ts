/** What a slice of the log adds up to: everything that is written, and what the ledger says of it. */
import type { BucketRow } from '../../core/metering/plan.ts';
import type { EventOutcome, OutcomeKind } from '../../storage/events/tables.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import type { CorrectionMessage } from '../../storage/progress/corrections.ts';
import type { SliceCounts } from '../../storage/progress/slices.ts';
import type { ReadEvent } from '../steps/read-events.ts';

export type PreparedSlice = {
  /** Of them, those behind `from` and before `to`, without a gap. */
  readonly records: readonly LogRecord[];
  readonly from: bigint;
  readonly to: bigint;
  /** Those that are stored: new, and readable. */
  readonly events: readonly ReadEvent[];
  /** The others; and of those that are stored, why a meter cannot use one. */
  readonly outcomes: readonly EventOutcome[];
  /** Those that the stores refuse: dead letters among the outcomes. */
  readonly rejected: readonly ReadEvent[];
  /** How many feed no meter. */
  readonly unmatched: number;
  readonly buckets: readonly BucketRow[];
  /** Corrections of events that stand before them in the log, perhaps in this slice. */
  readonly corrections: readonly MetCorrection[];
};

/** A correction, with the place in the log at which it was met. */
export type MetCorrection = { readonly offset: bigint; readonly correction_id: string };

export function isCorrection({ kind, body }: LogRecord): boolean {
  return kind === 'control' && body.includes('"type":"correction"');
}

export function listCorrections(records: readonly LogRecord[]): MetCorrection[] {
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

/** Every event that the records hold is in one of these numbers. */
export function countSlice(slice: PreparedSlice): SliceCounts {
  const { records, events } = slice;
  const sent = records.reduce((sum, record) => sum + record.event_count, 0);
  const { duplicate: duplicates, conflict: conflicts, dead_letter: dead_letters } = countOutcomes(slice);
  const unread = sent - events.length - duplicates - conflicts - dead_letters;
  return { events: sent, stored: events.length, duplicates, conflicts, dead_letters, unread };
}
