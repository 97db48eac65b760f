/** The operations of the metering.* areas. */
import { z } from 'zod';
import { FarthingError } from '../../core/foundation/error.ts';
import { parseEventTime } from '../../core/foundation/time/instant.ts';
import { compileMeter } from '../../core/metering/compiled-meter.ts';
import { properties } from '../../core/metering/event-text.ts';
import { compileExpression } from '../../core/metering/expression.ts';
import { matches } from '../../core/metering/match.ts';
import { aggregationShape, checkMeter } from '../../core/metering/meter/record.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import { toDecimal } from '../support/exact-decimal.ts';
import { usageOfEvents } from '../support/usage-of-events.ts';
import type { Result } from './compare.ts';

export function createMeter(given: unknown) {
  const { aggregation } = z.object({ aggregation: z.unknown() }).parse(given);
  const shape = aggregationShape.safeParse(aggregation);
  if (!shape.success) return { valid: false };
  try {
    const meter = { name: 'Calls', event_name: 'call', aggregation: shape.data, filters: [] };
    checkMeter({ ...meter, reset_usage: 'BILLING_PERIOD' }, compileExpression);
    return { valid: true };
  } catch (error) {
    if (error instanceof FarthingError) return { valid: false };
    throw error;
  }
}

/** meter.matches: whether an event with these properties passes the filters. */
export function meterMatches(given: Result): Result {
  const { filters, properties: values } = given as { filters: MeterDefinition['filters']; properties: object };
  const meter = compileMeter({ ...METER, filters, aggregation: { type: 'COUNT' } });
  return { matches: matches(meter, properties(JSON.stringify(values))) };
}

/** expression.eval: what does not compile and what cannot be evaluated are both errors. */
export function evaluateExpression(given: Result): Result {
  const { expression, properties: values } = given as { expression: string; properties: object };
  try {
    const result = compileExpression(expression).evaluate(properties(JSON.stringify(values)));
    return result.unusable === undefined ? { value: toDecimal(result.value).toString() } : { error: true };
  } catch (error) {
    if (error instanceof FarthingError) return { error: true };
    throw error;
  }
}

/** meter.extract: the usage of one event. A value that cannot be used counts for nothing, and is listed with its reason. */
export function extractQuantity(given: Result): Result {
  const { aggregation, properties: values } = given as {
    aggregation: MeterDefinition['aggregation'];
    properties: object;
  };
  const event = { id: 'e', timestamp: '2026-01-01T00:00:00Z', ...values };
  const usage = usageOf({
    aggregation,
    events: [event],
    start: '2026-01-01T00:00:00Z',
    end: '2026-01-02T00:00:00Z',
  });
  return { quantity: usage.value.toString() };
}

export function aggregateUsage(given: Result): Result {
  return { value: usageOf(given as AggregateGiven).value.toString() };
}

type AggregateGiven = {
  aggregation: MeterDefinition['aggregation'];
  events: { id: string; timestamp: string; [property: string]: unknown }[];
  start: string;
  end: string;
  timezone?: string;
};

function usageOf({ aggregation, events, start, end, timezone }: AggregateGiven) {
  const meter = compileMeter({ ...METER, aggregation });
  const metered = events.map(({ id, timestamp, ...values }) => ({
    event_id: id,
    external_customer_id: 'customer',
    timestamp_us: micros(timestamp),
    properties: properties(JSON.stringify(values)),
  }));
  return usageOfEvents(meter, metered, {
    start_us: micros(start),
    end_us: micros(end),
    ...(timezone ? { timezone } : {}),
  });
}

const METER: Omit<MeterDefinition, 'aggregation'> = {
  id: 'm',
  event_name: 'call',
  filters: [],
  reset_usage: 'BILLING_PERIOD',
};

function micros(text: string): number {
  const instant = parseEventTime(text);
  if (typeof instant === 'string') throw new Error(`${text} is ${instant}`);
  return instant;
}
