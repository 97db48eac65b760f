/** Fields that queries of events and usage share: times, windows, customers and properties. */
import { setMaxListeners } from 'node:events';
import { z } from 'zod';
import { FarthingError, invalid } from '../../../core/foundation/error.ts';
import { orNull } from '../../../core/foundation/record.ts';
import { parseEventTime, toUs } from '../../../core/foundation/time/instant.ts';
import { checkRange, type RequestedRange } from '../../../core/foundation/time/range.ts';
import { type WindowSize, windowCount } from '../../../core/foundation/time/window.ts';
import { isTimezone } from '../../../core/foundation/time/zone.ts';
import { toBaseSize } from '../../../core/metering/bucket-size.ts';
import { windowSize } from '../../../core/metering/meter/record.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { Context } from '../../http/route.ts';

const instantText = (text: string | null | undefined, context: z.core.$RefinementCtx): number | null => {
  if (text === null || text === undefined || text === '') return null;
  const instant = parseEventTime(text);
  if (typeof instant === 'number') return instant;
  if (instant !== 'absent') context.addIssue(`is ${instant}: give an RFC 3339 timestamp`);
  return null;
};

/** RFC 3339 timestamp as microseconds since 1970; null if absent. */
export const instantUs = z.string().nullish().meta({ format: 'date-time' }).transform(instantText);

/** Required RFC 3339 timestamp, as microseconds since 1970. */
export const requiredInstantUs = z
  .string()
  .meta({ format: 'date-time' })
  .transform((text, context): number => {
    const instant = instantText(text, context);
    if (instant === null && context.issues.length === 0) context.addIssue('is required');
    return instant ?? 0;
  });

export const anyWindowSize = orNull(windowSize).meta({
  description: 'Size of the windows of the range. Default: one number for the whole range.',
});

export const anyTimezone = orNull(
  z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' }),
).meta({ description: 'IANA timezone in which windows begin. Default: UTC.' });

/** Property name → accepted values. */
export const propertyValues = z
  .record(z.string().min(1), z.array(z.string()).min(1))
  .nullish()
  .transform((given) => (given && Object.keys(given).length > 0 ? given : null))
  .meta({ description: 'Accepted values by property name of the events; all properties must match.' });

/** Descriptions of the range fields in all usage queries. */
export const usageRange = {
  start_time: { description: 'Earliest instant of the events, inclusive.' },
  end_time: { description: 'Exclusive end of the events.' },
  billing_anchor: {
    description:
      'Instant on whose day of the month MONTH windows begin. Default: the first day; in analytics the day of the subscription’s periods.',
  },
};

/** Earliest timestamp of an event. Ingestion refuses earlier ones, so a range from here on contains every event. */
export const BEGINNING_US = parseEventTime('1900-01-01T00:00:00Z') as number;

/** Default range: from the earliest timestamp until now. */
export function toRequestedRange(
  input: { start_time: number | null; end_time: number | null },
  now: Date,
): RequestedRange {
  const end_us = input.end_time ?? toUs(now.getTime());
  const start_us = input.start_time ?? BEGINNING_US;
  return checkRange({ start_us, end_us });
}

/** Maximum number of windows; it allows more than a month of minutes. */
export const WINDOWS_MAX = 50_000;

/**
 * Refuses a query with more windows than WINDOWS_MAX, because its answer would be too large to arrive whole. A year, for example, has half
 * a million minutes.
 */
export function checkWindows(range: RequestedRange, size: WindowSize | null | undefined, field = 'window_size'): void {
  if (windowCount(range, size) <= WINDOWS_MAX) return;
  throw invalid(field, `the range has more than ${WINDOWS_MAX} windows of ${size}: ask for a shorter range`);
}

/**
 * Limits the number of buckets, because each of them is computed separately. Buckets that are pre-aggregated rows, which are in UTC, have
 * no limit.
 */
export function checkBuckets(
  range: RequestedRange,
  size: WindowSize | null | undefined,
  timezone: string | null,
): void {
  if (size && !(toBaseSize(size) === size && timezone === null)) checkWindows(range, size, 'bucket_size');
}

/** Returns the requested external id; null for all customers. An unknown customer_id is refused. */
export async function loadRequestedCustomers(
  input: { customer_id?: string | null; external_customer_id?: string | null },
  { scope, services }: Context,
): Promise<string[] | null> {
  const { customer_id, external_customer_id } = input;
  if (!customer_id) return external_customer_id ? [external_customer_id] : null;
  const { external_id } = await CustomerModel.fetch(scope, customer_id, { database: services.postgres });
  if (external_customer_id && external_customer_id !== external_id)
    throw invalid('external_customer_id', `is not that of customer ${customer_id}`);
  return [external_id];
}

const GONE = 499;

/** Aborts the work on a query when the caller disconnects: the statement in the store, and the loop over its rows. */
export async function withBounds<Answer>(
  { scope, response }: Context,
  answer: (bounds: QueryBounds) => Promise<Answer>,
): Promise<Answer> {
  const controller = new AbortController();
  // Each query of the request listens to this signal, and Node would warn of more than ten listeners.
  setMaxListeners(0, controller.signal);
  const leave = () =>
    controller.abort(new FarthingError('invalid_operation', 'the caller disconnected', { http_status_code: GONE }));
  response.once('close', leave);
  if (response.destroyed) leave();
  try {
    return await answer({ asker: scope.tenant_id, signal: controller.signal, spent: { work: 0 } });
  } catch (error) {
    // After an abort, the reason of the abort is thrown, and not the error of the aborted statement.
    controller.signal.throwIfAborted();
    // After an error, the other queries of the request are aborted, because their results are not needed.
    controller.abort(error);
    throw error;
  } finally {
    response.off('close', leave);
  }
}
