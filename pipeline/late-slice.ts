/**
 * A slice that is tried again long after its first try: the tables may have forgotten its tokens, so they cannot be trusted
 * to keep it from being written twice. When nothing of the earlier tries can arrive any more, it is looked up which raw rows
 * are there, and the others are written; bucket rows that may be there are not added but rebuilt from the raw events.
 */
import { type RebuildTarget, rebuildBuckets } from '../actions/rebuild-buckets.ts';
import { US_PER_DAY } from '../core/metering/timestamp.ts';
import { missingRows } from '../storage/events/present.ts';
import { type EngineClock, writeRows } from '../storage/events/rows.ts';
import {
  EVENT_IDENTITIES,
  EVENT_OUTCOMES,
  EVENTS,
  type EventOutcome,
  type RowTarget,
} from '../storage/events/tables.ts';
import { noteUncertainDays } from '../storage/meter-versions.ts';
import { finishSlice, type SliceState } from '../storage/slices.ts';
import type { Database, Stores } from '../storage/stores.ts';
import type { PreparedSlice } from './partition.ts';

export type LateSlice = {
  readonly state: SliceState;
  readonly clock: EngineClock;
  readonly slice: PreparedSlice;
  versionOf(meterId: string): number;
};

/** The raw rows that are missing. */
export async function writeMissingRows(
  { clickhouse }: Stores,
  { state, slice }: LateSlice,
  deadline: { readonly s: number; check(table: string): void },
): Promise<void> {
  const put = async <Row>(target: RowTarget<Row>, rows: readonly Row[]) => {
    const token = `late:${state.partition}:${slice.from}:${state.epoch}:${deadline.s}`;
    await writeRows(clickhouse, target, { rows, fence: { token, deadline_s: deadline.s } });
  };
  const kind = ({ outcome, meter_id }: EventOutcome) => `${outcome}/${meter_id}`;
  await put(EVENTS, await missingRows(clickhouse, { table: 'events', rows: slice.events }));
  await put(EVENT_IDENTITIES, await missingRows(clickhouse, { table: 'event_identities', rows: slice.events }));
  const outcomes = [...slice.outcomes, ...slice.poisoned];
  await put(EVENT_OUTCOMES, await missingRows(clickhouse, { table: 'event_outcomes', rows: outcomes, kind }));
  deadline.check('events');
}

/** All rows that the slice has a part in, recounted with it; the slice is done with that. */
export async function rebuildSlice(stores: Stores, { state, clock, slice, versionOf }: LateSlice): Promise<void> {
  const targets: RebuildTarget[] = slice.buckets.map((row) => ({
    tenant_id: row.tenant_id,
    environment_id: row.environment_id,
    meter_id: row.meter_id,
    day: Math.floor(row.bucket_start_us / US_PER_DAY),
    external_customer_ids: [row.external_customer_id],
  }));
  await rebuildBuckets(stores, {
    held: state,
    clock,
    name: `slice-${slice.from}`,
    own_before: slice.to,
    targets: async () => targets,
    finish: async (transaction: Database) => {
      // A version whose past is still being counted is settled with these days rebuilt.
      for (const [meter_id, days] of daysByMeter(targets))
        await noteUncertainDays(transaction, { meter_id, version: versionOf(meter_id) }, days);
      await finishSlice(transaction, state, { next_offset: slice.to, watermark_us: slice.watermark_us });
    },
  });
}

function daysByMeter(targets: readonly RebuildTarget[]): Map<string, number[]> {
  const days = new Map<string, Set<number>>();
  for (const { meter_id, day } of targets) days.set(meter_id, (days.get(meter_id) ?? new Set()).add(day));
  return new Map([...days].map(([meter_id, some]) => [meter_id, [...some]]));
}
