/**
 * Control messages of the log that form no slice, each applied exactly once at its offset: a meter changes (a barrier), usage rows are
 * rebuilt, daily rollups are made. Work on the stores is planned like a slice, so after a crash it is repeated before any later record.
 * Corrections of events are part of the slices (pipeline/slices/partition.ts).
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
import { NO_ROWS } from '../../storage/progress/slice-notifications.ts';
import { type OwnedPartition } from '../../storage/progress/slice-state.ts';
import { finishSlice, NO_EVENTS, planSlice } from '../../storage/progress/slices.ts';
import { pipelineMetrics } from '../metrics.ts';

type ControlMessage = BarrierMessage | RebuildMessage | DailyRollupsMessage;

/** `to`: offset after the message. `problem`: error of work that failed, after which the log continues. */
type PassedControlMessage = { readonly to: bigint; readonly problem?: Error | null };

export async function passControl(
  stores: Stores,
  lease: OwnedPartition,
  record: LogRecord,
): Promise<PassedControlMessage> {
  const message = JSON.parse(record.body.toString('utf8')) as ControlMessage;
  const to = record.offset + 1n;
  const end = (transaction: Database) =>
    finishSlice(transaction, lease, {
      from: record.offset,
      next_offset: to,
      watermark_us: record.received_at_us,
      last_record: recordCrc(record),
      counts: NO_EVENTS,
      notification: NO_ROWS,
    });
  if (message.type === 'meter') {
    await passBarrier(stores, { message, record, end });
    return { to };
  }
  const { attempt, again, done } = await planSlice(stores.postgres, lease, { from: record.offset, to });
  if (done) return { to };
  // No statement of an earlier attempt may arrive during this one.
  if (again) await raiseFence(stores.clickhouse, { writer: toPartitionWriter(lease.partition), attempt });
  if (message.type === 'rebuild') {
    await passRebuild(stores, { lease, record, end }, message);
    return { to };
  }
  const made = await makeDailyRollups(stores, { held: lease, days_before: message.days_before, finish: end });
  pipelineMetrics.dailyRollups(made);
  return { to, problem: made.problem };
}

type BarrierMessagePass = { message: BarrierMessage; record: LogRecord; end(transaction: Database): Promise<void> };

async function passBarrier({ postgres }: Stores, { message, record, end }: BarrierMessagePass): Promise<void> {
  const barrier = { ...message, partition: record.partition, from_offset: record.offset };
  await postgres.transaction(async (transaction) => {
    await recordBarrier(transaction, barrier);
    await end(transaction);
  });
}

type ControlMessagePass = {
  readonly lease: OwnedPartition;
  readonly record: LogRecord;
  end(transaction: Database): Promise<void>;
};

async function passRebuild(
  stores: Stores,
  { lease, record, end }: ControlMessagePass,
  { rebuild_id }: RebuildMessage,
): Promise<void> {
  const rebuild = await findRebuild(stores.postgres, rebuild_id);
  if (!rebuild || rebuild.done) return stores.postgres.transaction(end);
  const { tenant_id, environment_id, targets, settles } = rebuild;
  const scope = { tenant_id, environment_id };
  await rebuildBuckets(stores, {
    held: lease,
    own_before: record.offset,
    settling: settles,
    targets: async () => {
      const uncertain = settles ? await uncertainTargets(stores, scope, settles) : [];
      return [...targets.map((target) => ({ ...scope, ...target })), ...uncertain];
    },
    finish: async (transaction) => {
      if (settles) await finishVersion(transaction, settles, 'live');
      await finishRebuild(transaction, rebuild_id);
      await end(transaction);
    },
  });
}

/** Rows that may be wrong in a version that is about to go live. */
async function uncertainTargets(stores: Stores, scope: Scope, version: SettlingVersion): Promise<RebuildTarget[]> {
  const { meter_id } = version;
  const { uncertain_days } = await readVersion(stores.postgres, version);
  const days = uncertain_days.map((day) => ({ ...scope, meter_id, day }));
  return [...days, ...(await listOvertakenTargets(stores, scope, version))];
}
