/** Subtracts events outside the range of a query from merged rows that contain them. */
import { FarthingError } from '../../core/foundation/error.ts';
import { US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import { UsageBucket } from '../../core/metering/bucket.ts';
import type { UsageCell } from '../../core/metering/usage.ts';
import type { BucketCell } from './bucket-cells.ts';

/** Subtracts the taken cells from the stored ones; drops a cell without remaining events. */
export function subtractCells(stored: readonly BucketCell[], taken: readonly UsageCell[]): UsageCell[] {
  const cells = new Map<string, UsageCell>();
  const add = (cell: UsageCell) => {
    const { key, segment_us, window_us, group_key } = cell;
    const cell_key = JSON.stringify([Math.floor(segment_us / US_PER_SECOND), window_us, group_key, key]);
    const known = cells.get(cell_key);
    if (known) known.bucket.combine(cell.bucket);
    // The bucket is copied, because the stored one may be cached unchanged.
    else cells.set(cell_key, { ...cell, bucket: UsageBucket.of(cell.bucket) });
  };
  for (const cell of stored) add(toUsageCell(cell));
  for (const cell of taken) add({ ...cell, bucket: cell.bucket.negative() });
  const left = [...cells.values()];
  if (left.some(({ bucket }) => bucket.count < 0)) throw toMissingRowsError();
  return left.filter(({ bucket }) => bucket.count > 0);
}

function toMissingRowsError(): FarthingError {
  const what = 'the rows contain fewer events than lie outside the range; the audit finds which';
  return new FarthingError('internal_error', what);
}

export function toUsageCell({ customer, ...cell }: BucketCell): UsageCell {
  return { ...cell, key: customer };
}
