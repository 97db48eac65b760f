/** Whether the meters of an environment count an event (docs/rules/events.md, "Events that count nowhere"). */
import { measure } from '../compiled-meter.ts';
import type { MeteredEvent } from '../contribution.ts';
import { type MeterIndex, matches } from '../match.ts';

/** `unusable`: a meter accepts the event, and none can use its value. `unmatched`: no meter accepts it. */
type CountStatus = 'counted' | 'unusable' | 'unmatched';

export function deriveCountStatus(
  meters: MeterIndex,
  event: MeteredEvent & { readonly event_name: string },
): CountStatus {
  const matching = (meters.get(event.event_name) ?? []).filter((meter) => matches(meter, event.properties));
  if (matching.length === 0) return 'unmatched';
  return matching.some((meter) => measure(meter, event).unusable === undefined) ? 'counted' : 'unusable';
}
