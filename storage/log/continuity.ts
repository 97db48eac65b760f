/**
 * No record of a partition may be missing between the stores and the log, and the log must be the one that filled the stores. Otherwise
 * events are lost or count twice, so the partition halts with a reason that an operator can act on, and no record is skipped
 * (docs/operations.md, "A halted partition").
 */
import { crc32 } from 'node:zlib';
import type { LogRecord, StoredPosition } from './log.ts';

/** The partition halts: a retry does not help, and an operator must act. */
export class PartitionStopped extends Error {
  readonly partition: number;

  constructor(partition: number, why: string) {
    super(`partition ${partition} is halted: ${why} (docs/operations.md, "A halted partition")`);
    this.name = 'PartitionStopped';
    this.partition = partition;
  }
}

/** Distinguishes records with the same offset of different logs; stored as `slices.last_record`. */
export function recordCrc(record: Pick<LogRecord, 'body'>): number {
  return crc32(record.body);
}

/** Checks that the records continue at `expected` without a gap. */
export function checkContinues(
  partition: number,
  expected: bigint,
  records: readonly Pick<LogRecord, 'offset'>[],
): void {
  let next = expected;
  for (const { offset } of records) {
    if (offset !== next) throw missing(partition, next, offset);
    next++;
  }
}

/** Returns the records up to the first gap. These records are processed, and the partition halts exactly at the gap. */
export function takeUntilHole<Record extends { readonly offset: bigint }>(records: readonly Record[]): Record[] {
  const hole = records.findIndex(({ offset }, index) => index > 0 && offset !== records[index - 1]!.offset + 1n);
  return hole < 0 ? [...records] : records.slice(0, hole);
}

function missing(partition: number, expected: bigint, got: bigint): PartitionStopped {
  const what =
    got > expected ? `the ${got - expected} records before it are not in the log` : 'the log returned records again';
  return new PartitionStopped(partition, `expected the record at offset ${expected}, got offset ${got}: ${what}`);
}

/**
 * Checks that the log has all records after the stores' position, and that it does not end before that position. `low` is its first record,
 * `end` the next offset.
 */
export function checkBounds(
  partition: number,
  { next_offset, min_end_offset }: Pick<StoredPosition, 'next_offset' | 'min_end_offset'>,
  { low, end }: { low: bigint; end: bigint },
): void {
  const at = `the stores are at offset ${next_offset}`;
  if (next_offset < low) {
    const lost = 'the records between were deleted before they were processed';
    throw new PartitionStopped(partition, `${at}, but the log begins at offset ${low}: ${lost}`);
  }
  const needed = next_offset > min_end_offset ? next_offset : min_end_offset;
  if (needed <= end) return;
  const begun = needed > next_offset ? `, with a slice up to ${needed} begun` : '';
  const why = 'it has lost records, or is another log';
  throw new PartitionStopped(partition, `${at}${begun}, but the log ends at offset ${end}: ${why}`);
}

/**
 * Throws if the log is not the one that filled the stores. `found` is the checksum of the record before `next_offset`
 * in this log, `last_record` that in the log that filled the stores.
 */
export function checkSameLog(
  partition: number,
  { next_offset, last_record }: Pick<StoredPosition, 'next_offset' | 'last_record'>,
  found: number,
): void {
  if (last_record === null || last_record === found) return;
  throw new PartitionStopped(
    partition,
    `the record at offset ${next_offset - 1n} is not the one that was processed (checksum ${found}, expected ${last_record}): ` +
      `this is another log than the stores were filled from, and its first ${next_offset} records are not in them`,
  );
}

/**
 * Pause before the next attempt, in milliseconds. A halted partition waits for an operator, and each attempt rereads the worker's state.
 */
export function pauseAfter(error: unknown, failures: number): number {
  return Math.min(error instanceof PartitionStopped ? 30_000 : 5_000, 100 * 2 ** Math.min(failures, 9));
}
