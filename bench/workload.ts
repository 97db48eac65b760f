/** The seeded workload of the benchmarks: events of about 330 bytes, skewed customers, 20 event names, 50 meters. */
import { HOUR_MS } from '../core/foundation/time/durations.ts';
import type { MeterDefinition } from '../core/metering/meter-definition.ts';

export type Random = () => number;

/** A small seeded generator (mulberry32), so that every run has the same workload. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const MODELS = ['small', 'medium', 'large', 'vision', 'code'];
const REGIONS = ['us-east-1', 'us-west-2', 'eu-west-1', 'ap-south-1'];
export const EVENT_NAMES = Array.from({ length: 20 }, (_, index) => `api.operation_${index}`);

/** The six hours before this one. */
const SPAN_MS = 6 * HOUR_MS;
const RECENT_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - SPAN_MS;

export type WorkloadOptions = { customers?: number; from_ms?: number; span_ms?: number; run?: number };

/** JSON text of one event. Times increase over the span, with a small random deviation. */
function eventText(random: Random, index: number, total: number, options: WorkloadOptions = {}): string {
  const { customers = 5_000, from_ms = RECENT_MS, span_ms = SPAN_MS, run = 0 } = options;
  // Log-uniform: a few customers send half of the events.
  const customer = Math.floor(customers ** random()) - 1;
  const at = new Date(from_ms + Math.floor((index / total) * span_ms + random() * 60_000));
  const entropy = Math.floor(random() * 2 ** 48)
    .toString(36)
    .padStart(10, '0');
  return (
    `{"event_id":"evt_${run.toString(36)}_${index.toString(36).padStart(8, '0')}_${entropy}","event_name":"${EVENT_NAMES[Math.floor(random() * 20)]}",` +
    `"external_customer_id":"customer_${customer}","timestamp":"${at.toISOString()}","source":"gateway-${customer % 3}",` +
    `"properties":{"model":"${MODELS[Math.floor(random() * 5)]}","region":"${REGIONS[Math.floor(random() * 4)]}",` +
    `"tokens":${Math.floor(random() * 4000)},"duration_ms":${(random() * 900).toFixed(3)},"status":"${random() < 0.95 ? 'ok' : 'error'}",` +
    `"host":"host-${Math.floor(random() * 40)}","premium":${random() < 0.2}}}`
  );
}

/** Bulk bodies of `size` events each. */
export function* bulkBodies(
  seed: number,
  total: number,
  size: number,
  options: WorkloadOptions = {},
): Generator<Buffer> {
  const random = seeded(seed);
  for (let from = 0; from < total; from += size) {
    const events: string[] = [];
    for (let index = from; index < Math.min(total, from + size); index++)
      events.push(eventText(random, index, total, { ...options, run: seed }));
    yield Buffer.from(`{"events":[${events.join(',')}]}`);
  }
}

/** 50 meters over the 20 names, half of them with filters: about 1.8 matches per event. */
export function meterDefinitions(): Omit<MeterDefinition, 'id'>[] {
  return Array.from({ length: 50 }, (_, index) => ({
    event_name: EVENT_NAMES[index % 20]!,
    filters: index < 25 ? [] : [{ key: 'region', values: [REGIONS[index % 4]!, REGIONS[(index + 1) % 4]!] }],
    aggregation:
      index % 3 === 0
        ? { type: 'COUNT' as const }
        : { type: 'SUM' as const, field: index % 3 === 1 ? 'tokens' : 'duration_ms' },
    reset_usage: 'BILLING_PERIOD' as const,
  }));
}
