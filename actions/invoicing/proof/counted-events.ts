/** Reads the events that usage lines counted, with the contribution of each event to each line. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, parseEventTime } from '../../../core/foundation/time/instant.ts';
import { type CompiledMeter, compileMeter, measure } from '../../../core/metering/compiled-meter.ts';
import type { Contribution } from '../../../core/metering/contribution.ts';
import { matches } from '../../../core/metering/match.ts';
import { TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';
import { type MarkedEvent, streamMarkedEvents } from '../../../storage/events/marked-events.ts';
import type { RawEvent } from '../../../storage/events/raw-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { LineCounting } from './gather.ts';

/** Contributions of an event in the order of the lines; null if a line did not count it. */
export type CountedEvent = { readonly event: MarkedEvent; readonly taken: readonly (Contribution | null)[] };

type ProofWindow = { readonly start_us: Microseconds; readonly end_us: Microseconds };

export function toWindow({ counted }: LineCounting): ProofWindow {
  return { start_us: parseMicroseconds(counted.window_start), end_us: parseMicroseconds(counted.window_end) };
}

export function compileCountedMeter({ definition }: LineCounting): CompiledMeter {
  return compileMeter(definition);
}

/** Reads the events once for all `countings`, which must have equal `source`. Events that no line counted are skipped. */
export async function* readCountedEvents(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  scope: Scope,
  countings: readonly LineCounting[],
  signal?: AbortSignal,
): AsyncGenerator<CountedEvent> {
  const [first] = countings;
  if (first === undefined) return;
  const meters = countings.map(compileCountedMeter);
  const isIn = buildTimeFilter(first);
  const slicer = new TimeSlicer(scope.tenant_id);
  const wanted = {
    tenant_id: scope.tenant_id,
    environment_id: scope.environment_id,
    event_name: first.counted.meter.event_name.trim(),
    external_customer_ids: first.counted.customers.map(({ external_customer_id }) => external_customer_id),
    ...toWindow(first),
    marks: first.counted.marks,
    signal,
  };
  for await (const event of streamMarkedEvents(clickhouse, wanted)) {
    if (slicer.isOver(meters.length)) await slicer.next(signal);
    if (!isIn(event)) continue;
    const taken = meters.map((meter) => measureEvent(meter, event));
    if (taken.some((of) => of !== null)) yield { event, taken };
  }
}

/** Contribution of an event to a meter; null if the meter does not count it. */
export function measureEvent(meter: CompiledMeter, event: RawEvent): Contribution | null {
  if (!matches(meter, event.properties)) return null;
  const contribution = measure(meter, event);
  return contribution.unusable === undefined ? contribution : null;
}

/** Builds a filter for events in the intervals in which their customer is counted. */
export function buildTimeFilter({
  counted,
}: LineCounting): (event: Pick<RawEvent, 'external_customer_id' | 'timestamp_us'>) => boolean {
  const clipped = new Map<string, readonly ProofWindow[]>();
  for (const { external_customer_id, times } of counted.customers)
    if (times !== null)
      clipped.set(
        external_customer_id,
        times.map(({ start, end }) => ({ start_us: parseMicroseconds(start), end_us: parseMicroseconds(end) })),
      );
  return ({ external_customer_id, timestamp_us: at }) => {
    const times = clipped.get(external_customer_id);
    return times === undefined || times.some(({ start_us, end_us }) => at >= start_us && at < end_us);
  };
}

function parseMicroseconds(text: string): Microseconds {
  const instant = parseEventTime(text);
  if (typeof instant !== 'number') throw new RangeError(`${JSON.stringify(text)} is not an instant`);
  return instant;
}
