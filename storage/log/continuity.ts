/**
 * No record of a partition may be missing between what the stores have and what the log hands over, and the log must be the
 * one that they were filled from. Where either does not hold, events are lost or would be counted twice: the partition stops,
 * with a reason that a person can act on, and nothing is stepped over (docs/operations.md, "A partition that stands still").
 */
import { crc32 } from 'node:zlib';
import type { LogRecord, StoredPlace } from './log.ts';

/** Trying again does not help: a person must look. */
export class PartitionStopped extends Error {
  readonly partition: number;

  constructor(partition: number, why: string) {
    super(`partition ${partition} stands still: ${why} (docs/operations.md, "A partition that stands still")`);
    this.name = 'PartitionStopped';
    this.partition = partition;
  }
}

/** Tells a record from another at the same offset: kept as `slices.last_record`. */
export function recordCrc(record: Pick<LogRecord, 'body'>): number {
  return crc32(record.body);
}

/** The records go on at `expected`, one offset after the other. */
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

/** The records up to the first hole: what stands before it has its effect, and the partition stops exactly there. */
export function takeUntilHole<Record extends { readonly offset: bigint }>(records: readonly Record[]): Record[] {
  const hole = records.findIndex(({ offset }, index) => index > 0 && offset !== records[index - 1]!.offset + 1n);
  return hole < 0 ? [...records] : records.slice(0, hole);
}

function missing(partition: number, expected: bigint, got: bigint): PartitionStopped {
  const what =
    got > expected
      ? `the ${got - expected} records before it are not in the log`
      : 'the log goes back to what it has handed over before';
  return new PartitionStopped(partition, `expected the record at offset ${expected}, got offset ${got}: ${what}`);
}

/** The log has what the stores do not have yet, and has had what they have. `low` is its first record, `end` the next one. */
export function checkBounds(
  partition: number,
  { next_offset, seen_until }: Pick<StoredPlace, 'next_offset' | 'seen_until'>,
  { low, end }: { low: bigint; end: bigint },
): void {
  const at = `the stores are at offset ${next_offset}`;
  if (next_offset < low) {
    const lost = 'what stands between was deleted before it was processed';
    throw new PartitionStopped(partition, `${at}, but the log begins at offset ${low}: ${lost}`);
  }
  const needed = next_offset > seen_until ? next_offset : seen_until;
  if (needed <= end) return;
  const begun = needed > next_offset ? `, with a slice up to ${needed} begun` : '';
  const why = 'it has lost records, or is another log';
  throw new PartitionStopped(partition, `${at}${begun}, but the log ends at offset ${end}: ${why}`);
}

/** `found` stands before `next_offset` in this log; the stores were filled from one that had `last_record` there. */
export function checkSameLog(
  partition: number,
  { next_offset, last_record }: Pick<StoredPlace, 'next_offset' | 'last_record'>,
  found: number,
): void {
  if (last_record === null || last_record === found) return;
  throw new PartitionStopped(
    partition,
    `the record at offset ${next_offset - 1n} is not the one that was processed (checksum ${found}, expected ${last_record}): ` +
      `this is another log than the stores were filled from, and its first ${next_offset} records are not in them`,
  );
}

/** Before the next try. A partition that stands still waits for a person, and each try costs the reading of what a worker knows. */
export function pauseAfter(error: unknown, failures: number): number {
  return Math.min(error instanceof PartitionStopped ? 30_000 : 5_000, 100 * 2 ** Math.min(failures, 9));
}
