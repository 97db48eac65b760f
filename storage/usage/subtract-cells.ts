/** Subtracts events from merged cells that contain them: those outside the range of a query, or one that is left out. */
import { FarthingError } from '../../core/foundation/error.ts';
import { US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import { type BucketField, UsageBucket } from '../../core/metering/bucket.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { UsageCell } from '../../core/metering/usage.ts';
import type { BucketCell } from './bucket-cells.ts';

const ADDITIVE: readonly BucketField[] = ['count', 'sum', 'weighted_sum'];

/** Whether events of the meter can be subtracted, because all fields add up. */
export function canSubtract({ aggregation }: CompiledMeter): boolean {
  return aggregation.fills.every((field) => ADDITIVE.includes(field));
}

/** Subtracts the taken cells from the counted ones; drops a cell without remaining events. */
export function subtractCells(counted: readonly UsageCell[], taken: readonly UsageCell[]): UsageCell[] {
  const cells = new Map<string, UsageCell>();
  const add = (cell: UsageCell) => {
    const { key, segment_us, window_us, group_key } = cell;
    const cell_key = JSON.stringify([Math.floor(segment_us / US_PER_SECOND), window_us, group_key, key]);
    const known = cells.get(cell_key);
    if (known) known.bucket.combine(cell.bucket);
    // The bucket is copied, because the stored one may be cached unchanged.
    else cells.set(cell_key, { ...cell, bucket: UsageBucket.of(cell.bucket) });
  };
  for (const cell of counted) add(cell);
  for (const cell of taken) add({ ...cell, bucket: cell.bucket.negative() });
  const left = [...cells.values()];
  if (left.some(({ bucket }) => bucket.count < 0)) throw toMissingRowsError();
  return left.filter(({ bucket }) => bucket.count > 0);
}

function toMissingRowsError(): FarthingError {
  const what = 'the rows contain fewer events than must be subtracted; the audit finds which';
  return new FarthingError('internal_error', what);
}

export function toUsageCell({ customer, ...cell }: BucketCell): UsageCell {
  return { ...cell, key: customer };
}
