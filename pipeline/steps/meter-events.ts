/** Third step: which meters an event feeds, with what, and the pre-aggregated rows that a slice adds up to. */

import { measure } from '../../core/metering/compiled-meter.ts';
import type { Contribution, MeteredEvent } from '../../core/metering/contribution.ts';
import type { MeterIndex } from '../../core/metering/match.ts';
import { matches } from '../../core/metering/match.ts';
import { BucketAggregator, type BucketRow } from '../../core/metering/plan.ts';
import type { Scope } from '../../core/scope.ts';
import type { EventOutcome } from '../../storage/events/tables.ts';
import type { ReadEvent } from './read-events.ts';

export type Metered = { buckets: BucketRow[]; unusable: EventOutcome[]; matched: number; unmatched: number };

/** `metersOf` answers the meters that apply in this slice, ready for use. */
export function meterEvents(events: readonly ReadEvent[], metersOf: (scope: Scope) => MeterIndex): Metered {
  const aggregator = new BucketAggregator();
  const unusable: EventOutcome[] = [];
  let matched = 0;
  let unmatched = 0;
  let scope: Scope | undefined;
  let index: MeterIndex | undefined;
  for (const event of events) {
    if (event.scope !== scope) {
      scope = event.scope;
      index = metersOf(scope);
    }
    const meters = index!.get(event.event_name);
    if (meters === undefined) {
      unmatched++;
      continue;
    }
    const metered = meteredOf(event);
    let fed = false;
    for (const meter of meters) {
      if (!matches(meter, event.property)) continue;
      fed = true;
      const contribution = measure(meter, metered);
      if (contribution.unusable === undefined) aggregator.add(event.scope, meter, contribution as Contribution);
      else unusable.push(unusableOutcome(event, meter.id, contribution.unusable));
    }
    if (fed) matched++;
    else unmatched++;
  }
  return { buckets: aggregator.drain(), unusable, matched, unmatched };
}

function meteredOf(event: ReadEvent): MeteredEvent {
  return {
    event_id: event.event_id,
    external_customer_id: event.external_customer_id,
    timestamp_us: event.timestamp_us,
    properties: event.property,
  };
}

export function unusableOutcome(event: ReadEvent, meter_id: string, reason: string): EventOutcome {
  return {
    tenant_id: event.tenant_id,
    environment_id: event.environment_id,
    event_id: event.event_id,
    outcome: 'unusable',
    meter_id,
    reason,
    received_at_us: event.received_at_us,
    partition: event.partition,
    offset: event.offset,
    position: event.position,
    body: '',
  };
}
