/**
 * Applies control messages of the log, each exactly once at its offset: a new meter version, a rebuild of bucket rows, or daily rollups.
 * A rebuild or rollup records its offsets before it writes, as a slice does, so after a crash it is repeated before any later record
 * (ARCHITECTURE.md, "Exactly once"). Corrections of events are applied within slices (pipeline/slices/partition.ts).
 */
import { listOvertakenTargets } from '../../actions/metering/events/correct-events.ts';
import { makeDailyRollups } from '../../actions/metering/usage/make-daily-rollups.ts';
import { type RebuildTarget, rebuildBuckets } from '../../actions/metering/usage/rebuild-buckets.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { raiseFence } from '../../storage/events/write-fence.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import { recordCrc } from '../../storage/log/continuity.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import { toPartitionWriter } from '../../storage/progress/attempts.ts';
import {
  findRebuild,
  finishRebuild,
  type RebuildMessage,
  type SettlingVersion,
} from '../../storage/progress/bucket-rebuilds.ts';
import type { DailyRollupsMessage } from '../../storage/progress/daily-rollups-message.ts';
import {
  type BarrierMessage,
  finishVersion,
  readVersion,
  recordBarrier,
} from '../../storage/progress/meter-versions.ts';
import { type OwnedPartition } from '../../storage/progress/partition-progress.ts';
import { NO_ROWS } from '../../storage/progress/slice-notifications.ts';
import { finishSlice, NO_EVENTS, planSlice } from '../../storage/progress/slices.ts';
import { pipelineMetrics } from '../metrics.ts';

type ControlMessage = BarrierMessage | RebuildMessage | DailyRollupsMessage;

/**
 * Result of a control message: the offset after it (`to`), and the error of work that failed (`problem`), after which
 * the log continues.
 */
type AppliedControlMessage = { readonly to: bigint; readonly problem?: Error | null };

export async function applyControlMessage(
  stores: Stores,
  owned_partition: OwnedPartition,
  record: LogRecord,
): Promise<AppliedControlMessage> {
  const message = JSON.parse(record.body.toString('utf8')) as ControlMessage;
  const to = record.offset + 1n;
  const end = (transaction: Database) =>
    finishSlice(transaction, owned_partition, {
      from: record.offset,
      next_offset: to,
      watermark_us: record.received_at_us,
      last_record: recordCrc(record),
      counts: NO_EVENTS,
      notification: NO_ROWS,
    });
  if (message.type === 'meter') {
    await applyBarrier(stores, { message, record, end });
    return { to };
  }
  const { attempt, again, done } = await planSlice(stores.postgres, owned_partition, { from: record.offset, to });
  if (done) return { to };
  // The fence is raised first. It rejects statements of an earlier attempt that arrive during this one.
  if (again) await raiseFence(stores.clickhouse, { writer: toPartitionWriter(owned_partition.partition), attempt });
  if (message.type === 'rebuild') {
    await applyRebuild(stores, { owned_partition, record, end }, message);
    return { to };
  }
  const made = await makeDailyRollups(stores, { owned_partition, days_before: message.days_before, finish: end });
  pipelineMetrics.dailyRollups(made);
  return { to, problem: made.problem };
}

type BarrierApplication = { message: BarrierMessage; record: LogRecord; end(transaction: Database): Promise<void> };

async function applyBarrier({ postgres }: Stores, { message, record, end }: BarrierApplication): Promise<void> {
  const barrier = { ...message, partition: record.partition, from_offset: record.offset };
  await postgres.transaction(async (transaction) => {
    await recordBarrier(transaction, barrier);
    await end(transaction);
  });
}

type RebuildApplication = {
  readonly owned_partition: OwnedPartition;
  readonly record: LogRecord;
  end(transaction: Database): Promise<void>;
};

async function applyRebuild(
  stores: Stores,
  { owned_partition, record, end }: RebuildApplication,
  { rebuild_id }: RebuildMessage,
): Promise<void> {
  const rebuild = await findRebuild(stores.postgres, rebuild_id);
  if (!rebuild || rebuild.done) return stores.postgres.transaction(end);
  const { tenant_id, environment_id, targets, settles } = rebuild;
  const scope = { tenant_id, environment_id };
  await rebuildBuckets(stores, {
    owned_partition,
    own_before: record.offset,
    settling: settles,
    targets: async () => {
      const uncertain = settles ? await listUncertainTargets(stores, scope, settles) : [];
      return [...targets.map((target) => ({ ...scope, ...target })), ...uncertain];
    },
    finish: async (transaction) => {
      if (settles) await finishVersion(transaction, settles, 'live');
      await finishRebuild(transaction, rebuild_id);
      await end(transaction);
    },
  });
}

/** Lists the days of a version that is about to go live whose rows may be wrong. */
async function listUncertainTargets(stores: Stores, scope: Scope, version: SettlingVersion): Promise<RebuildTarget[]> {
  const { meter_id } = version;
  const { uncertain_days } = await readVersion(stores.postgres, version);
  const days = uncertain_days.map((day) => ({ ...scope, meter_id, day }));
  return [...days, ...(await listOvertakenTargets(stores, scope, version))];
}
