/**
 * Meters that two subscriptions of one customer charge at the same time (docs/rules/subscriptions.md, "One meter in two
 * subscriptions"). Both charge each event.
 */
import { FarthingError } from '../foundation/error.ts';
import { groupBy } from '../foundation/group-by.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';

/** Interval in which a usage line charges; a null end is open. */
export type ChargingLine = {
  readonly subscription_id: string;
  readonly meter_id: string;
  readonly start_ms: Milliseconds;
  readonly end_ms: Milliseconds | null;
};

export type SharedMeter = { readonly meter_id: string; readonly subscription_ids: readonly string[] };

/** One entry per meter, with the other subscriptions whose lines overlap one of `lines`. */
export function findSharedMeters(lines: readonly ChargingLine[], others: readonly ChargingLine[]): SharedMeter[] {
  const shared = others.filter((other) =>
    lines.some((line) => line.meter_id === other.meter_id && overlap(line, other)),
  );
  return Array.from(
    groupBy(shared, ({ meter_id }) => meter_id),
    ([meter_id, of]) => ({
      meter_id,
      subscription_ids: [...new Set(of.map(({ subscription_id }) => subscription_id))].sort(),
    }),
  );
}

function overlap(one: ChargingLine, other: ChargingLine): boolean {
  const end = Math.min(one.end_ms ?? Infinity, other.end_ms ?? Infinity);
  return Math.max(one.start_ms, other.start_ms) < end;
}

export function describeSharedMeter({ meter_id, subscription_ids }: SharedMeter, meter_name: string): string {
  const others = subscription_ids.join(', ');
  const noun = subscription_ids.length === 1 ? 'subscription' : 'subscriptions';
  return `meter ${meter_name} (${meter_id}) is charged by ${noun} ${others} of the same customer, too: each event is charged by both`;
}

export function refuseSharedMeter(shared: SharedMeter, meter_name: string): FarthingError {
  const { meter_id, subscription_ids } = shared;
  const message = `${describeSharedMeter(shared, meter_name)}; the setting subscription_config refuses that`;
  return new FarthingError('invalid_operation', message, {
    details: { field: 'meter_id', meter_id, subscription_ids },
  });
}
