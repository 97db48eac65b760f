/** Values of bucket rows in the format of ClickHouse: decimals are text without an exponent. */

import type { BucketFields } from '../../core/metering/bucket.ts';
import { QUANTITY_PLACES } from '../../core/metering/quantity.ts';

const NEVER = '-9223372036854775808';

/** Parses the latest value; null for the neutral value (`NO_LATEST` of ../events/tables.ts). */
export function parseLatest([timestamp_us, event_id, value]: [string, string, string]): BucketFields['latest'] {
  return timestamp_us === NEVER ? null : { timestamp_us: Number(timestamp_us), event_id, value: parseScaled(value) };
}

export function parseScaledOrNull(value: unknown): bigint | null {
  return value === null ? null : parseScaled(value);
}

export function parseScaled(text: unknown): bigint {
  const [whole = '', fraction = ''] = (text as string).split('.');
  if (fraction.length > QUANTITY_PLACES) throw new RangeError('not a stored quantity');
  return BigInt(whole + fraction.padEnd(QUANTITY_PLACES, '0'));
}
