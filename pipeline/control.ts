/**
 * Control messages of the log, each given its effect exactly once at its offset: a meter changes (a barrier), an event is
 * corrected, usage rows are rebuilt, day rows are made. What touches the stores is planned like a slice, so that a crash
 * leaves it to be done again before anything behind it.
 */
import { correctEvent, overtakenByCorrections } from '../actions/correct-event.ts';
import { makeDayRows } from '../actions/make-day-rows.ts';
import { type RebuildTarget, rebuildBuckets } from '../actions/rebuild-buckets.ts';
import type { Scope } from '../core/scope.ts';
import { findRebuild, finishRebuild, type RebuildMessage, type Settled } from '../storage/bucket-rebuilds.ts';
import type { CorrectionMessage } from '../storage/corrections.ts';
import type { DayRowsMessage } from '../storage/day-rows-message.ts';
import type { EngineClock } from '../storage/events/rows.ts';
import type { LogRecord } from '../storage/log/log.ts';
import { type BarrierMessage, readVersion, recordBarrier, settleVersion } from '../storage/meter-versions.ts';
import { finishSlice, planSlice, type SliceState } from '../storage/slices.ts';
import type { Database, Stores } from '../storage/stores.ts';
import { pipelineMetrics } from './metrics.ts';

type ControlMessage = BarrierMessage | CorrectionMessage | RebuildMessage | DayRowsMessage;

export type Holding = { readonly state: SliceState; readonly clock: EngineClock };

/** What stands behind the message, and what it could not do, where the log goes on without it. */
export type Passed = { readonly to: bigint; readonly problem?: Error | null };

/** Passes one control message. */
export async function passControl(stores: Stores, holding: Holding, record: LogRecord): Promise<Passed> {
  const message = JSON.parse(record.body.toString('utf8')) as ControlMessage;
  const to = record.offset + 1n;
  const end = (transaction: Database) =>
    finishSlice(transaction, holding.state, { next_offset: to, watermark_us: record.received_at_us });
  if (message.type === 'meter') {
    const barrier = { ...message, partition: record.partition, from_offset: record.offset };
    await stores.postgres.transaction(async (transaction) => {
      await recordBarrier(transaction, barrier);
      await end(transaction);
    });
    return { to };
  }
  await planSlice(stores.postgres, holding.state, { from: record.offset, to });
  if (message.type === 'day_rows') {
    const { days_before } = message;
    const made = await makeDayRows(stores, { held: holding.state, clock: holding.clock, days_before, finish: end });
    pipelineMetrics.dayRows(made);
    return { to, problem: made.problem };
  }
  if (message.type === 'correction') await correctEvent(stores, { ...holding, record, end }, message.correction_id);
  else await passRebuild(stores, { ...holding, record, end }, message);
  return { to };
}

type Passing = Holding & { readonly record: LogRecord; end(transaction: Database): Promise<void> };

async function passRebuild(
  stores: Stores,
  { state, clock, record, end }: Passing,
  { rebuild_id }: RebuildMessage,
): Promise<void> {
  const rebuild = await findRebuild(stores.postgres, rebuild_id);
  if (!rebuild || rebuild.done) return stores.postgres.transaction(end);
  const { tenant_id, environment_id, targets, settles } = rebuild;
  const scope = { tenant_id, environment_id };
  await rebuildBuckets(stores, {
    held: state,
    clock,
    name: `repair-${rebuild_id}`,
    own_before: record.offset,
    settling: settles,
    targets: async () => {
      const uncertain = settles ? await uncertainTargets(stores, scope, settles) : [];
      return [...targets.map((target) => ({ ...scope, ...target })), ...uncertain];
    },
    finish: async (transaction) => {
      if (settles) await settleVersion(transaction, settles, 'live');
      await finishRebuild(transaction, rebuild_id);
      await end(transaction);
    },
  });
}

/** What may be wrong in the rows of a version that is about to go live. */
async function uncertainTargets(stores: Stores, scope: Scope, version: Settled): Promise<RebuildTarget[]> {
  const { meter_id } = version;
  const { uncertain_days } = await readVersion(stores.postgres, version);
  const days = uncertain_days.map((day) => ({ ...scope, meter_id, day }));
  return [...days, ...(await overtakenByCorrections(stores, scope, version))];
}
