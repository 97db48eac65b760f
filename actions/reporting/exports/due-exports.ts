/**
 * Creates tasks for due exports: one per scheduled task and range, also if several processes run this. The ranges of a scheduled task
 * follow each other without a gap (docs/rules/exports.md, "Scheduled exports").
 */

import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { SYSTEM_USER } from '../../../core/platform/audit/record.ts';
import { computeNextInterval } from '../../../core/platform/scheduled-task/interval.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { moveOn, ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { listDueScheduledTasks } from '../../../storage/queue/due-exports.ts';
import { addExport } from './scheduled-tasks.ts';

type DueExportsReport = { done: { exports: number }; waiting: string[]; failed: { id: string; error: unknown }[] };

/**
 * Maximum numbers of scheduled tasks per run and of ranges per task. The next run does the rest, so a long backlog does not block other
 * tasks.
 */
const TASKS_AT_ONCE = 500;
const RANGES_AT_ONCE = 24;

export async function addDueExports(
  { postgres }: Pick<Stores, 'postgres'>,
  { now, delay_seconds, only }: DueEnvironments & { now: Date; delay_seconds: number },
): Promise<DueExportsReport> {
  const over_at = new Date(now.getTime() - delay_seconds * 1_000);
  const report: DueExportsReport = { done: { exports: 0 }, waiting: [], failed: [] };
  for (const due of await listDueScheduledTasks(postgres, { over_at, limit: TASKS_AT_ONCE, only, left: [] })) {
    try {
      const added = await addRanges({ postgres }, due, { now, over_at, only });
      report.done.exports += added;
      if (added === RANGES_AT_ONCE) report.waiting.push(due.id);
    } catch (error) {
      report.failed.push({ id: due.id, error });
    }
  }
  return report;
}

/** Adds ranges under a row lock: a concurrent process then finds the next range. */
function addRanges(
  { postgres }: Pick<Stores, 'postgres'>,
  { id, ...scope }: DueRecord,
  { now, over_at, only }: DueEnvironments & { now: Date; over_at: Date },
): Promise<number> {
  return postgres.transaction(async (database) => {
    const scheduled = await ScheduledTaskModel.fetch(scope, id, { database, lock: true });
    if (!only && (await hasClock(database, scheduled))) return 0;
    const author = { user_id: SYSTEM_USER, now };
    let next = { start: toInstant(scheduled.next_start), end: toInstant(scheduled.next_end) };
    let added = 0;
    while (scheduled.enabled && scheduled.status === 'published' && next.end <= over_at.getTime()) {
      if (added === RANGES_AT_ONCE) break;
      const range = { start: formatMs(next.start), end: formatMs(next.end) };
      await addExport(database, scope, {
        scheduled,
        ...range,
        is_scheduled: true,
        asked_at: only ? null : now,
        author,
      });
      next = computeNextInterval(scheduled.interval, next);
      added++;
    }
    if (added > 0)
      await moveOn(database, scheduled, { next_start: formatMs(next.start), next_end: formatMs(next.end) });
    return added;
  });
}

/**
 * Whether the environment has a test clock. One may have been created after the due tasks were listed; the environment then no longer uses
 * the machine's clock.
 */
async function hasClock(database: Transaction, scope: ScheduledTaskModel): Promise<boolean> {
  const clocks = await TestClockModel.in(scope, database).select('id').limit(1);
  return clocks.length > 0;
}
