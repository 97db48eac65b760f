/**
 * Compares expected bucket rows with stored rows, field by field. Bucket rows must equal a recomputation from the raw
 * events, always, to the last digit (docs/reliability.md).
 */
import { formatUs, type Microseconds } from '../foundation/time/instant.ts';
import type { BucketRow } from './bucket-aggregator.ts';
import { scaledToDecimal } from './quantity.ts';

/** A stored row. Instead of its set of distinct values it has the size of the set and the size of its union with the expected set. */
export type StoredFields = Omit<BucketRow, 'uniques'> & {
  readonly unique_count: number;
  readonly united_count: number;
};

export type RowDifference = {
  readonly size: string;
  readonly external_customer_id: string;
  readonly bucket_start_us: Microseconds;
  readonly group_key: string;
  readonly field: string;
  /** Stored row; null if there is none. */
  readonly stored: string | null;
  readonly expected: string | null;
};

type BucketRowKey = Pick<BucketRow, 'size' | 'external_customer_id' | 'bucket_start_us' | 'group_key'>;

export function rowDifferences(expected: readonly BucketRow[], stored: readonly StoredFields[]): RowDifference[] {
  const rest = new Map(stored.map((row) => [toRowKey(row), row]));
  const differences: RowDifference[] = [];
  for (const row of expected) {
    const key = toRowKey(row);
    const found = rest.get(key);
    rest.delete(key);
    if (found === undefined) differences.push(buildDifference(row, 'row', { stored: null, expected: summary(row) }));
    else differences.push(...fieldDifferences(row, found));
  }
  for (const row of rest.values())
    differences.push(buildDifference(row, 'row', { stored: summary(row), expected: null }));
  return differences;
}

function fieldDifferences(expected: BucketRow, stored: StoredFields): RowDifference[] {
  const differences: RowDifference[] = [];
  for (const [field, toText] of FIELDS) {
    const values = { stored: toText(stored), expected: toText(expected) };
    if (values.stored !== values.expected) differences.push(buildDifference(expected, field, values));
  }
  for (const field of ['first_us', 'last_us'] as const) {
    const values = { stored: instantText(stored[field]), expected: instantText(expected[field]) };
    // Rows of an older version and daily rollups have no first_us and last_us, and their readers do not need them. So null is no
    // difference.
    if (values.stored !== null && values.expected !== null && values.stored !== values.expected)
      differences.push(buildDifference(expected, field, values));
  }
  const { length } = expected.uniques;
  if (stored.unique_count !== length || stored.united_count !== length) {
    const values = { stored: `${stored.unique_count} distinct values`, expected: `${length} distinct values` };
    const other =
      stored.unique_count === length ? { ...values, stored: `${length} distinct values, not the same` } : values;
    differences.push(buildDifference(expected, 'uniques', other));
  }
  return differences;
}

type Numbers = Omit<BucketRow, 'uniques'>;

const FIELDS: readonly (readonly [string, (row: Numbers) => string | null])[] = [
  ['count', (row) => String(row.count)],
  ['sum', (row) => quantityText(row.sum)],
  ['weighted_sum', (row) => quantityText(row.weighted_sum)],
  ['min', (row) => quantityText(row.min)],
  ['max', (row) => quantityText(row.max)],
  ['latest', ({ latest }) => latest && `${quantityText(latest.value)} at ${latest.timestamp_us} of ${latest.event_id}`],
];

function instantText(us: number | null): string | null {
  return us === null ? null : formatUs(us);
}

function quantityText(scaled: bigint | null): string | null {
  return scaled === null ? null : scaledToDecimal(scaled).toFixed();
}

function summary(row: Numbers): string {
  return `${row.count} events, sum ${quantityText(row.sum)}`;
}

function buildDifference(
  { size, external_customer_id, bucket_start_us, group_key }: BucketRowKey,
  field: string,
  values: { stored: string | null; expected: string | null },
): RowDifference {
  return { size, external_customer_id, bucket_start_us, group_key, field, ...values };
}

function toRowKey({ size, external_customer_id, bucket_start_us, group_key }: BucketRowKey): string {
  return JSON.stringify([size, external_customer_id, bucket_start_us, group_key]);
}
