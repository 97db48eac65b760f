/**
 * The contents that an event had, each with the position in the log from which on it counts, and whether a usage line counted the event. The
 * last content before the positions up to which a line counted decides, as in the proof of the line.
 */
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import type { ComputedFrom } from '../../../core/rating/computed-from.ts';
import { hasCounted, type ReceivedPosition } from '../../../core/rating/counted-until.ts';
import type { EventContent, EventHistory } from '../../../storage/events/corrections.ts';
import type { RawEvent } from '../../../storage/events/raw-events.ts';
import { buildTimeFilter, compileCountedMeter, measureEvent, toWindow } from '../../invoicing/proof/counted-events.ts';
import type { LineCounting } from '../../invoicing/proof/gather.ts';

export type EventVersion = {
  /** Null from a void on. */
  readonly content: RawEvent | null;
  readonly place: ReceivedPosition;
};

/** Lists the contents of an event, oldest first. Stored corrections have the receipt of their event; `findReceipt` supplies their own. */
export function buildVersions(
  event_id: string,
  { original, corrections }: EventHistory,
  findReceipt: (sequence: string) => Microseconds | undefined = () => undefined,
): EventVersion[] {
  const { event_partition: partition, event_offset: offset, received_at_us } = original;
  const sent = { content: toRawEvent(event_id, original), place: { partition, offset, received_at_us } };
  const corrected = corrections.map(({ action, log_position, sequence, ...content }) => ({
    content: action === 'void' ? null : toRawEvent(event_id, content),
    place: { ...log_position, received_at_us: findReceipt(String(sequence)) ?? received_at_us },
  }));
  return [sent, ...corrected];
}

function toRawEvent(event_id: string, { properties: text, ...content }: EventContent): RawEvent {
  const { external_customer_id, event_name, timestamp_us, source } = content;
  const { length } = text;
  return { event_id, external_customer_id, event_name, timestamp_us, source, properties: propertiesIn(text), length };
}

/** Builds the check whether a line counts a content, regardless of its position in the log. */
export function buildContentCheck(counting: LineCounting): (content: RawEvent | null) => boolean {
  const meter = compileCountedMeter(counting);
  const isInTime = buildTimeFilter(counting);
  const { start_us, end_us } = toWindow(counting);
  const customers = new Set(counting.counted.customers.map(({ external_customer_id }) => external_customer_id));
  return (content) =>
    content !== null &&
    customers.has(content.external_customer_id) &&
    content.event_name === meter.event_name &&
    content.timestamp_us >= start_us &&
    content.timestamp_us < end_us &&
    isInTime(content) &&
    measureEvent(meter, content) !== null;
}

type LineWithCounting = {
  readonly line: { readonly computed_from: Pick<ComputedFrom, 'high_water' | 'as_of'> };
  readonly counting: LineCounting | null;
};

/** Builds the check whether a line counted an event. Only its position decides if the definition of the meter is no longer stored. */
export function buildCountedCheck({
  line: { computed_from },
  counting,
}: LineWithCounting): (versions: readonly EventVersion[]) => boolean {
  if (counting === null) return (versions) => hasCounted(computed_from, versions.at(-1)!.place);
  const hasContent = buildContentCheck(counting);
  const counted_until = { high_water: counting.counted.marks };
  return (versions) => {
    const known = versions.findLast(({ place }) => hasCounted(counted_until, place));
    return known !== undefined && hasContent(known.content);
  };
}
