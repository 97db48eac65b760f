/**
 * Applies corrections in the pipeline. The corrected content is stored next to the event, and the bucket rows of its old and new content
 * are rebuilt from the raw events. All corrections of a slice share one rebuild, which also writes the bucket rows of the slice's own
 * events. Each applies once: a repeated message, a void of a voided event, and a correction of an unknown id change nothing.
 */

import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import { type Microseconds, parseEventTime, US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { properties as propertiesIn, readEvent } from '../../../core/metering/event-text.ts';
import { matches } from '../../../core/metering/match.ts';
import {
  type AppliedCorrection,
  type CorrectionPosition,
  compareCorrections,
  deleteWrongCorrections,
  type EventContent,
  type EventHistory,
  loadHistories,
  type StoredEventVersion,
  writeCorrections,
} from '../../../storage/events/corrections.ts';
import type { WriteAttempt } from '../../../storage/events/write-fence.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import {
  type Correction,
  listEventsCorrectedSince,
  listPendingCorrections,
  markCorrectionApplied,
  toLogPosition,
} from '../../../storage/progress/corrections.ts';
import { type LateArrival, recordLateUsage } from '../../../storage/progress/late-usage.ts';
import { listMetersByEventNames } from '../../../storage/progress/meter-versions.ts';
import { type OwnedPartition } from '../../../storage/progress/partition-progress.ts';
import { enqueueUsageChecks } from '../../../storage/progress/usage-checks.ts';
import { findCountedMeter } from '../../../storage/usage/recount.ts';
import { type Rebuild, type RebuildTarget, rebuildBuckets } from '../usage/rebuild-buckets.ts';

type CorrectionBatch = {
  readonly owned_partition: OwnedPartition;
  /** Corrections in the order of the log. */
  readonly records: readonly { readonly offset: bigint; readonly correction_id: string }[];
  /** Instant at which the last record of the slice was received. */
  readonly received_at_us: Microseconds;
  /** End offset of the slice. Before it the raw rows of this partition are complete, so the recount includes the events of the slice. */
  readonly own_before: bigint;
  /** Bucket rows of the slice's own events. */
  readonly slice_rows: NonNullable<Rebuild['slice_rows']>;
  writeSliceRows(): Promise<void>;
  /** Commits the slice in the transaction that marks the corrections as applied. */
  end(transaction: Database): Promise<void>;
};

export async function correctEvents(stores: Stores, batch: CorrectionBatch): Promise<void> {
  const effects = await gatherEffects(stores, batch);
  const finish = async (transaction: Database) => {
    for (const { correction, row } of effects) await markCorrectionApplied(transaction, correction.id, row);
    const arrivals = effects.flatMap(toArrivals);
    await recordLateUsage(transaction, arrivals, batch.received_at_us);
    // Spend and balances may have changed, as after new usage.
    await enqueueUsageChecks(transaction, arrivals);
    await batch.end(transaction);
  };
  const rows = effects.flatMap(({ row }) => row ?? []);
  if (rows.length === 0) {
    await batch.writeSliceRows();
    return stores.postgres.transaction(finish);
  }
  await rebuildBuckets(stores, {
    owned_partition: batch.owned_partition,
    own_before: batch.own_before,
    slice_rows: batch.slice_rows,
    prepare: (own) => storeCorrections(stores, rows, own),
    targets: () => listTouchedTargets(stores, effects),
    finish,
  });
}

type CorrectionEffect = {
  readonly correction: Correction;
  /** The correction as it will be stored; null if its id was never accepted, or only after the correction. */
  readonly row: AppliedCorrection | null;
  /** Content of the event before and after the correction. */
  readonly contents: readonly EventContent[];
};

/** Lists the customers and times whose usage changed: those before and after the correction. */
function toArrivals({ correction, contents }: CorrectionEffect): LateArrival[] {
  const { tenant_id, environment_id } = correction;
  return contents.map(({ external_customer_id, timestamp_us }) => ({
    tenant_id,
    environment_id,
    external_customer_id,
    at_us: timestamp_us,
  }));
}

async function gatherEffects(
  { postgres, clickhouse }: Stores,
  { owned_partition, records }: CorrectionBatch,
): Promise<CorrectionEffect[]> {
  // If a message was appended twice, its first offset counts.
  const offsets = new Map(records.toReversed().map(({ correction_id, offset }) => [correction_id, offset]));
  const corrections = await listPendingCorrections(postgres, [...offsets.keys()]);
  const effects: CorrectionEffect[] = [];
  for (const some of groupBy(corrections, scopeKey).values()) {
    const histories = await loadHistories(clickhouse, some[0], [...new Set(some.map(({ event_id }) => event_id))]);
    const applied = new Map<string, AppliedCorrection[]>();
    for (const correction of some) {
      const history = histories.get(correction.event_id);
      const log_position = { partition: owned_partition.partition, offset: Number(offsets.get(correction.id)!) };
      if (!history || isAcceptedAfter(history.original, log_position)) {
        effects.push({ correction, row: null, contents: [] });
        continue;
      }
      const earlier = applied.get(correction.event_id) ?? [];
      const effect = buildEffect(correction, {
        before: findContentBefore(history, earlier, correction.id),
        history,
        log_position,
      });
      applied.set(correction.event_id, [...earlier, effect.row]);
      effects.push(effect);
    }
  }
  return effects;
}

type LastContent = StoredEventVersion & { readonly action: string };

/**
 * A dead letter may be corrected and then sent again within one slice. The event is then accepted after the correction, which does not
 * apply to it. If the event is on another partition, it was accepted before partitions were added, so before the correction.
 */
function isAcceptedAfter(
  { event_partition, event_offset }: StoredEventVersion,
  { partition, offset }: CorrectionPosition,
): boolean {
  return event_partition === partition && event_offset > offset;
}

/**
 * Returns the content of the event before this correction, which an aborted attempt may have stored already. It is the later of two: the
 * last stored correction with a smaller number, and the last one of this slice (`applied`). If a correction is applied again, a stored
 * correction of another slice may lie between two of this slice.
 */
function findContentBefore(
  { original, corrections }: EventHistory,
  applied: readonly AppliedCorrection[],
  id: string,
): LastContent {
  const now = applied.at(-1);
  const stored = corrections.findLast(({ sequence }) => sequence < BigInt(id));
  if (now && (!stored || stored.sequence <= BigInt(now.sequence))) return now;
  return stored ?? { ...original, action: 'none' };
}

type EffectInput = {
  readonly before: LastContent;
  readonly history: EventHistory;
  readonly log_position: CorrectionPosition;
};

function buildEffect(
  correction: Correction,
  { before, history, log_position }: EffectInput,
): CorrectionEffect & { row: AppliedCorrection } {
  const { tenant_id, environment_id, event_id, action, id: sequence } = correction;
  const after = action === 'void' ? null : buildReplacement(correction, before);
  const contentBefore = before.action === 'void' ? [] : [before];
  // An earlier attempt or a manual change may have stored other content under the number of this correction. Bucket rows that count that
  // content are rebuilt, too.
  const stored = history.corrections.filter((known) => String(known.sequence) === sequence);
  const { event_partition, event_offset, event_position } = history.original;
  const row = {
    ...before,
    ...after,
    tenant_id,
    environment_id,
    event_id,
    action,
    sequence,
    ...(toLogPosition(correction) ?? stored[0]?.log_position ?? log_position),
    event_partition,
    event_offset,
    event_position,
  };
  return { correction, row, contents: [...contentBefore, ...stored, ...(after === null ? [] : [after])] };
}

/** Stores the new contents and verifies them: without them the rebuild would count the old ones. */
async function storeCorrections(
  { clickhouse }: Stores,
  rows: readonly AppliedCorrection[],
  own: WriteAttempt,
): Promise<void> {
  const { missing, wrong } = await compareCorrections(clickhouse, rows);
  await writeCorrections(clickhouse, missing, own);
  if (wrong.length > 0) await deleteWrongCorrections(clickhouse, wrong);
  const left = await compareCorrections(clickhouse, rows);
  if (left.missing.length + left.wrong.length > 0)
    throw unavailable('the usage store (corrections that were written are not there)');
}

/** Builds the replacing content; without a timestamp it has that of the event. */
export function buildReplacement(
  { replacement }: Pick<Correction, 'replacement'>,
  before: Pick<EventContent, 'timestamp_us'>,
): EventContent {
  const fields = readEvent(replacement!);
  const given = fields.timestamp ? parseEventTime(fields.timestamp) : undefined;
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

/**
 * Lists the days and customers with corrections since the version was announced. The back-fill of the version may have read the events
 * before or after these corrections.
 */
export async function listOvertakenTargets(
  stores: Stores,
  scope: Scope,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<RebuildTarget[]> {
  const counted = await findCountedMeter(stores, scope, { meter_id, before: new Map(), settling: version });
  if (counted?.version !== version) return [];
  const corrected = await listEventsCorrectedSince(stores.postgres, scope, { meter_id, version });
  const histories = await loadHistories(stores.clickhouse, scope, corrected);
  const targets: RebuildTarget[] = [];
  for (const { original, corrections } of histories.values()) {
    for (const content of [original, ...corrections]) {
      if (content.event_name !== counted.meter.event_name) continue;
      const day = Math.floor(content.timestamp_us / US_PER_DAY);
      targets.push({ ...scope, meter_id, day, external_customer_ids: [content.external_customer_id] });
    }
  }
  return targets;
}

async function listTouchedTargets(stores: Stores, effects: readonly CorrectionEffect[]): Promise<RebuildTarget[]> {
  const targets: RebuildTarget[] = [];
  for (const some of groupBy(effects, ({ correction }) => scopeKey(correction)).values()) {
    const contents = some.flatMap(({ correction: { event_id }, contents: contentBefore }) =>
      contentBefore.map((content) => ({ ...content, event_id })),
    );
    targets.push(...(await listTouchedMeters(stores, some[0].correction, contents)));
  }
  return targets;
}

/**
 * Returns customers and days of the meters that any of these contents feeds. Contents with unusable values are included, because an earlier
 * version may have counted them.
 */
async function listTouchedMeters(
  stores: Stores,
  { tenant_id, environment_id }: Scope,
  contents: readonly (EventContent & { event_id: string })[],
): Promise<RebuildTarget[]> {
  const scope = { tenant_id, environment_id };
  const byName = groupBy(contents, ({ event_name }) => event_name);
  const targets: RebuildTarget[] = [];
  const meter_ids = await listMetersByEventNames(stores.postgres, scope, [...byName.keys()]);
  const meters = await Promise.all(
    meter_ids.map((meter_id) => findCountedMeter(stores, scope, { meter_id, before: new Map() })),
  );
  const parsed = new Map(contents.map((content) => [content, propertiesIn(content.properties)]));
  for (const counted of meters) {
    if (!counted) continue;
    const { meter_id, meter } = counted;
    for (const content of byName.get(meter.event_name) ?? []) {
      if (!matches(meter, parsed.get(content)!)) continue;
      const day = Math.floor(content.timestamp_us / US_PER_DAY);
      targets.push({ ...scope, meter_id, day, external_customer_ids: [content.external_customer_id] });
    }
  }
  return targets;
}
