/** Third step: the meters that an event feeds, its contributions, and the bucket rows of the slice. */

import type { Scope } from '../../core/foundation/scope.ts';
import { BucketAggregator, type BucketRow } from '../../core/metering/bucket-aggregator.ts';
import { measure } from '../../core/metering/compiled-meter.ts';
import type { Contribution, MeteredEvent } from '../../core/metering/contribution.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import type { PropertySource } from '../../core/metering/event-text.ts';
import type { MeterIndex } from '../../core/metering/match.ts';
import { matches } from '../../core/metering/match.ts';
import { TimeSlicer } from '../../storage/concurrency/time-slicer.ts';
import type { ReadEvent } from './read-events.ts';

type MeteringResult = {
  bucket_rows: BucketRow[];
  unusable: EventOutcome[];
  matched: number;
  unmatched: number;
  /** The first unmatched event of each environment. */
  first_unmatched: ReadEvent[];
};

/** `findMeters` returns the compiled meters that apply in this slice. The loop yields to other work between the events. */
export async function meterEvents(
  events: readonly ReadEvent[],
  findMeters: (scope: Scope) => MeterIndex,
): Promise<MeteringResult> {
  const timeSlicer = new TimeSlicer();
  const aggregator = new BucketAggregator();
  const unusable: EventOutcome[] = [];
  let matched = 0;
  let unmatched = 0;
  const firstUnmatched = new Map<Scope, ReadEvent>();
  const addUnmatched = (event: ReadEvent) => {
    if (unmatched++ === 0 || !firstUnmatched.has(event.scope)) firstUnmatched.set(event.scope, event);
  };
  let scope: Scope | undefined;
  let index: MeterIndex | undefined;
  for (const event of events) {
    if (event.scope !== scope) {
      scope = event.scope;
      index = findMeters(scope);
    }
    const meters = index!.get(event.event_name);
    if (meters === undefined) {
      addUnmatched(event);
      continue;
    }
    const metered = new Metering(event);
    let fed = false;
    for (const meter of meters) {
      if (!matches(meter, metered.properties)) continue;
      fed = true;
      const contribution = measure(meter, metered);
      if (contribution.unusable === undefined) aggregator.add(event.scope, meter, contribution as Contribution);
      else unusable.push(buildUnusableOutcome(event, meter.id, contribution.unusable));
    }
    if (fed) matched++;
    else addUnmatched(event);
    if (timeSlicer.isOver(meters.length)) await timeSlicer.next();
  }
  const bucket_rows: BucketRow[] = [];
  for (const rows of aggregator.drain()) {
    for (const row of rows) bucket_rows.push(row);
    if (timeSlicer.isOver(rows.length)) await timeSlicer.next();
  }
  return { bucket_rows, unusable, matched, unmatched, first_unmatched: [...firstUnmatched.values()] };
}

/** View of an event for the meters, which share its parsed properties. */
class Metering implements MeteredEvent {
  readonly properties: PropertySource;
  private readonly event: ReadEvent;

  constructor(event: ReadEvent) {
    this.event = event;
    this.properties = event.properties;
  }
  get event_id(): string {
    return this.event.event_id;
  }
  get external_customer_id(): string {
    return this.event.external_customer_id;
  }
  get timestamp_us(): number {
    return this.event.timestamp_us;
  }
}

function buildUnusableOutcome(event: ReadEvent, meter_id: string, reason: string): EventOutcome {
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
