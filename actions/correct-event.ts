/**
 * The effect of a correction where the pipeline meets it: what the event says from here on is stored beside it, and the
 * usage rows that it was in, or comes into, are written anew from the raw events. Once: a message that comes twice, a void
 * of what is void, and a correction of an id that never was accepted change nothing.
 */
import { FarthingError } from '../core/error.ts';
import { measure } from '../core/metering/compiled-meter.ts';
import { properties as propertiesIn, readEvent } from '../core/metering/event-text.ts';
import { matches } from '../core/metering/match.ts';
import { parseTimestamp, US_PER_DAY } from '../core/metering/timestamp.ts';
import type { Scope } from '../core/scope.ts';
import type { HeldPartition } from '../storage/bucket-gate.ts';
import { type Correction, correctedSince, findCorrection, settleCorrection } from '../storage/corrections.ts';
import {
  contentsOf,
  type EventContent,
  type StoredContent,
  storedContent,
  writeCorrection,
} from '../storage/events/corrections.ts';
import type { EngineClock } from '../storage/events/rows.ts';
import { metersOfEvents } from '../storage/meter-versions.ts';
import type { Database, Stores } from '../storage/stores.ts';
import { countedNow } from '../storage/usage/recount.ts';
import { type RebuildTarget, rebuildBuckets } from './rebuild-buckets.ts';

export type CorrectionMet = {
  readonly state: HeldPartition;
  readonly clock: EngineClock;
  readonly record: { readonly partition: number; readonly offset: bigint };
  /** Finishes the slice, in the transaction that settles the correction. */
  end(transaction: Database): Promise<void>;
};

const WRITE_WITHIN_S = 15;

export async function correctEvent(stores: Stores, met: CorrectionMet, id: string): Promise<void> {
  const correction = await findCorrection(stores.postgres, id);
  if (correction?.state !== 'requested') return stores.postgres.transaction((transaction) => met.end(transaction));
  const settle = (state: 'applied' | 'unknown_event') => async (transaction: Database) => {
    await settleCorrection(transaction, id, state);
    await met.end(transaction);
  };
  const stored = await storedContent(stores.clickhouse, correction, correction.event_id);
  if (!stored) return stores.postgres.transaction(settle('unknown_event'));
  const before = stored.last ?? { ...stored.original, action: 'none' };
  const after = correction.action === 'void' ? null : replacementOf(correction, before);
  const said = before.action === 'void' ? [] : [before];
  await rebuildBuckets(stores, {
    held: met.state,
    clock: met.clock,
    name: `correction-${id}`,
    own_before: met.record.offset,
    prepare: () => keep(stores, met, { correction, content: { ...before, ...after } }),
    targets: () => touched(stores, correction, after === null ? said : [...said, after]),
    finish: settle('applied'),
  });
}

function keep(
  { clickhouse }: Stores,
  { clock, record }: CorrectionMet,
  { correction, content }: { correction: Correction; content: StoredContent },
): Promise<void> {
  const { tenant_id, environment_id, event_id, action, id } = correction;
  const row = {
    ...content,
    tenant_id,
    environment_id,
    event_id,
    action,
    sequence: id,
    partition: record.partition,
    offset: Number(record.offset),
  };
  return writeCorrection(clickhouse, row, { token: id, deadline_s: clock.now_s() + WRITE_WITHIN_S });
}

/** What the event should have said; without a timestamp of its own it keeps the event's. */
function replacementOf({ replacement }: Correction, before: EventContent): EventContent {
  const fields = readEvent(replacement!);
  const given = fields.timestamp ? parseTimestamp(fields.timestamp) : undefined;
  if (fields.external_customer_id === undefined || (typeof given === 'string' && given !== 'absent'))
    throw new FarthingError('internal_error', 'a replacement was stored that is no event');
  return {
    event_name: fields.event_name,
    external_customer_id: fields.external_customer_id,
    customer_id: fields.customer_id ?? '',
    source: fields.source ?? '',
    timestamp_us: typeof given === 'number' ? given : before.timestamp_us,
    properties: fields.properties?.json() ?? '{}',
  };
}

/** What corrections touched since a version was announced: its back-fill may have read the events before or after them. */
export async function overtakenByCorrections(
  stores: Stores,
  scope: Scope,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<RebuildTarget[]> {
  const counted = await countedNow(stores, scope, { meter_id, before: new Map(), settling: version });
  if (counted?.version !== version) return [];
  const targets: RebuildTarget[] = [];
  for (const event_id of await correctedSince(stores.postgres, scope, { meter_id, version })) {
    for (const content of await contentsOf(stores.clickhouse, scope, event_id)) {
      if (content.event_name !== counted.meter.event_name) continue;
      const day = Math.floor(content.timestamp_us / US_PER_DAY);
      targets.push({ ...scope, meter_id, day, external_customer_ids: [content.external_customer_id] });
    }
  }
  return targets;
}

/** Customers and days of the meters that any of these contents feeds. */
async function touched(
  stores: Stores,
  scope: Scope & { event_id: string },
  contents: readonly EventContent[],
): Promise<RebuildTarget[]> {
  const { tenant_id, environment_id, event_id } = scope;
  const names = [...new Set(contents.map((content) => content.event_name))];
  const targets: RebuildTarget[] = [];
  for (const meter_id of await metersOfEvents(stores.postgres, scope, names)) {
    const counted = await countedNow(stores, scope, { meter_id, before: new Map() });
    if (!counted) continue;
    for (const content of contents) {
      if (content.event_name !== counted.meter.event_name) continue;
      const properties = propertiesIn(content.properties);
      if (!matches(counted.meter, properties)) continue;
      if (measure(counted.meter, { ...content, event_id, properties }).unusable !== undefined) continue;
      const day = Math.floor(content.timestamp_us / US_PER_DAY);
      targets.push({ tenant_id, environment_id, meter_id, day, external_customer_ids: [content.external_customer_id] });
    }
  }
  return targets;
}
