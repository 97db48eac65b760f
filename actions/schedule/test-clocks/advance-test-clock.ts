/**
 * Advances the clock of an environment to its target (docs/rules/clock.md, "Advancing"). Repeatedly it finds the next due instant, sets the
 * clock to that instant, and runs the same due work as the scheduler. The progress is stored in the clock's row, so that any worker can
 * continue. If two workers run at the same time, row locks prevent that both process the same record, as with two schedulers.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../../core/foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { addProgress, type ClockProgress } from '../../../core/platform/test-clock/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import {
  beginAdvance,
  endBrokenAdvance,
  finishAdvance,
  lockAdvance,
} from '../../../storage/models/schedule/clock-advances.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import { refreshStatistics } from '../../../storage/postgres/pool/statistics.ts';
import {
  completeRun,
  lockRun,
  type RunAttempt,
  type RunReference,
  requeueRun,
  tryRun,
} from '../../foundation/workflows/run.ts';
import { ClockAdvancePlanCache } from '../../invoicing/billing/clock-advance-plan-cache.ts';
import { waitForLog } from '../../metering/events/wait-for-log.ts';
import { type DueWork, type DueWorkReport, type DueWorkSettings, listDueWork, listNextDueTimes } from '../due-work.ts';
import { ADVANCE_JOB } from './move-test-clock.ts';

type AdvanceOutcome = 'completed' | 'failed' | 'overtaken';

/** Runs an advance. `overtaken` means that the run waits for others, and another job continues it. */
export async function tryAdvance(
  stores: Stores,
  place: RunReference,
  { settings, ...attempt }: RunAttempt & { readonly settings: DueWorkSettings },
): Promise<AdvanceOutcome> {
  try {
    return await tryRun(stores, place, attempt, () =>
      new ClockAdvancer(stores, place, { ...attempt, settings }).toItsEnd(),
    );
  } finally {
    await endBrokenAdvance(stores.postgres, place);
  }
}

/** Pause before the next pass if another transaction locks due work, or if usage is not complete yet. */
const RETRY_MS = 20;
const IDLE_MAX = 500;
/** Longest pause while other jobs do the due work; the pause grows up to it. */
const ELSEWHERE_MS_MAX = 500;
/** Time after which the run yields its slot to waiting clocks of other environments and tenants. */
const SLOT_MS = 3_000;

/**
 * Names of tables that an advance fills with years of rows in a minute, while the database refreshes their statistics rarely
 * (docs/decisions/0023-indexes-and-statistics.md).
 */
const FILLED = ['invoices', 'invoice_line_items', 'system_events', 'audit_entries', 'subscriptions'];
const ANALYZE_AFTER = 400;

class ClockAdvancer {
  readonly #stores: Stores;
  readonly #place: RunReference;
  readonly #attempt: RunAttempt;
  readonly #kinds: readonly DueWork[];
  readonly #worker = randomUUID();
  readonly #plans: ClockAdvancePlanCache;
  #idle = 0;
  #isSliceOver = false;
  /** Time for which this run has waited for other jobs and had no work itself. */
  #elsewhere_ms = 0;
  /** Count of completed work, as in the progress, at which the statistics are refreshed next; it doubles each time. */
  #analyzed_at = ANALYZE_AFTER;

  constructor(
    stores: Stores,
    place: RunReference,
    { settings, ...attempt }: RunAttempt & { settings: DueWorkSettings },
  ) {
    this.#stores = stores;
    this.#place = place;
    this.#attempt = attempt;
    this.#kinds = listDueWork(settings);
    this.#plans = new ClockAdvancePlanCache((transaction) => lockAdvance(transaction, place, this.#worker));
  }

  async toItsEnd(): Promise<AdvanceOutcome> {
    const { signal } = this.#attempt;
    const isWanted = async () => (await this.#clock()) !== null && (await this.#mayGoOn());
    await beginAdvance(this.#stores.postgres, this.#place, this.#worker);
    if (await this.#waitsForLog()) await waitForLog(this.#stores, this.#place, { signal, isWanted });
    if (!this.#isSliceOver) await this.#endBrokenStep();
    if (this.#isSliceOver) return this.#yieldSlot();
    for (let clock = await this.#clock(); clock !== null; clock = await this.#clock()) {
      signal.throwIfAborted();
      const due = await this.#next(clock);
      const at = Math.max(due.at, toInstant(clock.frozen_time));
      if (at > toInstant(clock.target_time!)) return this.#arrive();
      await this.#step(clock, { at, kinds: due.kinds });
      // A step that waits does not yield the slot: it fails after IDLE_MAX passes, and another job would count them from 0 again.
      const isOver = this.#idle === 0 && !(await this.#mayGoOn());
      if (isOver || this.#elsewhere_ms > SLOT_MS) return this.#yieldSlot();
    }
    return this.#stop();
  }

  /**
   * Whether the advance still has to wait for the log. No event is accepted in the environment during the advance, so its log is complete
   * after the first move.
   */
  async #waitsForLog(): Promise<boolean> {
    const clock = await this.#clock();
    return clock !== null && toInstant(clock.frozen_time) === toInstant(clock.advanced_from);
  }

  /**
   * Whether the advance may continue. The time slice is also checked during the work of one instant, which may take long. The next job then
   * finishes that instant, as after a crash.
   */
  async #mayGoOn(): Promise<boolean> {
    this.#isSliceOver ||= (await this.#attempt.mayGoOn?.()) === false;
    return !this.#isSliceOver;
  }

  /** Yields the slot. The progress and the awaited work are stored, so the next job continues with them. */
  async #yieldSlot(): Promise<'overtaken'> {
    await this.#stores.postgres.transaction(async (transaction) => {
      await finishAdvance(transaction, this.#place, this.#worker);
      await requeueRun(transaction, this.#place, ADVANCE_JOB);
    });
    return 'overtaken';
  }

  /** Loads the clock if this run still advances it; null after the clock was stopped. */
  async #clock(): Promise<TestClockModel | null> {
    const { workflow_id } = this.#place;
    const [clock] = await this.#mine(this.#stores.postgres, workflow_id);
    return clock ?? null;
  }

  #mine(database: Stores['postgres'], workflow_id: string) {
    return TestClockModel.in(this.#place, database).where({ workflow_id, test_clock_status: 'advancing' });
  }

  /**
   * Repeats the step at the clock's current instant. An earlier worker may have crashed or failed after it set the clock, and the search
   * for due work covers later instants only. Work that was done is not repeated.
   */
  async #endBrokenStep(): Promise<void> {
    const clock = await this.#clock();
    const at = clock && toInstant(clock.frozen_time);
    if (at === null || (at === toInstant(clock!.advanced_from) && !clock!.is_at_failure)) return;
    const instants = await this.#instants(at - 1);
    await this.#step(clock!, { at, kinds: this.#kinds.filter((_, index) => instants[index] === at) });
  }

  /** Finds the next due instant and the kinds of work that are due then. The instant is infinite if nothing is due. */
  async #next({ frozen_time }: TestClockModel): Promise<{ at: Milliseconds; kinds: DueWork[] }> {
    const instants = await this.#instants(toInstant(frozen_time));
    const at = Math.min(...instants);
    return { at, kinds: this.#kinds.filter((_, index) => instants[index] === at) };
  }

  /** Lists the next due instant after `from`, per kind of work. */
  async #instants(from: Milliseconds): Promise<Milliseconds[]> {
    const { tenant_id, environment_id } = this.#place;
    const dueQuery = { scope: { tenant_id, environment_id }, from: new Date(from) };
    const due = await listNextDueTimes(this.#stores, this.#kinds, dueQuery);
    return due.map((one) => one?.getTime() ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Runs all work of these kinds at the instant. If that makes further work due at the same instant, the next step runs
   * it.
   */
  async #step(clock: TestClockModel, { at, kinds }: { at: Milliseconds; kinds: readonly DueWork[] }): Promise<void> {
    if (!(await this.#move(clock, at))) return;
    const { tenant_id, environment_id } = this.#place;
    let { progress } = clock;
    // A step with work that cannot be interrupted is completed before the slot is yielded. Otherwise each job might begin that work again
    // without ever completing it.
    let mayEnd = this.#idle === 0;
    for (const kind of kinds) {
      mayEnd &&= kind.is_interruptible === true;
      const before = progress;
      if (!kind.draft_plan_cache) this.#plans.forget();
      const report = await kind.run(this.#stores, {
        now: new Date(at),
        only: { tenant_id, environment_id },
        plans: this.#plans,
        mayGoOn: mayEnd ? () => this.#mayGoOn() : undefined,
        onDone: (done) => this.#keep(clock.id, addProgress(before, done)),
      });
      throwFirstFailure(report, at);
      progress = addProgress(progress, report.done);
      if (mayEnd && this.#isSliceOver) break;
    }
    const isDone = countDone(progress) > countDone(clock.progress);
    const isNew = toInstant(clock.frozen_time) < at;
    if (isDone || isNew) {
      this.#idle = 0;
      this.#elsewhere_ms = 0;
    } else if (!this.#isSliceOver) return this.#waitABit(kinds, at);
    const isFirst = isNew || progress.instants === 0;
    // An instant is counted when the clock reaches it, even without work done: to the next job it would not be new.
    const isBegun = isNew && this.#isSliceOver;
    if (isDone || isBegun) await this.#keep(clock.id, { ...progress, instants: progress.instants + (isFirst ? 1 : 0) });
    await this.#refreshStatistics(countDone(progress));
  }

  async #refreshStatistics(done: number): Promise<void> {
    if (done < this.#analyzed_at) return;
    this.#analyzed_at = 2 * done;
    await refreshStatistics(this.#stores.postgres, FILLED);
  }

  async #move({ id }: TestClockModel, at: Milliseconds): Promise<boolean> {
    const frozen_time = formatMs(at);
    const mine = this.#mine(this.#stores.postgres, this.#place.workflow_id).where({ id });
    return Number(await mine.where('frozen_time', '<=', frozen_time).patch({ frozen_time })) > 0;
  }

  async #keep(id: string, progress: ClockProgress): Promise<void> {
    await this.#mine(this.#stores.postgres, this.#place.workflow_id).where({ id }).patch({ progress });
  }

  async #waitABit(kinds: readonly DueWork[], at: Milliseconds): Promise<void> {
    const { signal } = this.#attempt;
    this.#idle++;
    const isElsewhere = kinds.some(({ is_done_elsewhere }) => is_done_elsewhere);
    if (this.#idle > IDLE_MAX && !isElsewhere)
      throw new FarthingError('internal_error', `${formatNames(kinds)} at ${formatMs(at)}: nothing of it can be done`);
    const pause_ms = isElsewhere ? Math.min(RETRY_MS * this.#idle, ELSEWHERE_MS_MAX) : RETRY_MS;
    await wait(pause_ms, undefined, { signal });
    this.#elsewhere_ms = isElsewhere ? this.#elsewhere_ms + pause_ms : 0;
  }

  async #arrive(): Promise<'completed' | 'failed'> {
    return this.#stores.postgres.transaction(async (transaction) => {
      const [clock] = await this.#mine(transaction, this.#place.workflow_id).forUpdate();
      if (!clock) return this.#end(transaction, { is_stopped: true });
      const frozen_time = clock.target_time!;
      const arrived = { test_clock_status: 'ready' as const, frozen_time, target_time: null };
      await TestClockModel.change(clock, arrived, { by: { now: this.#attempt.clock() }, database: transaction });
      return this.#end(transaction, { is_stopped: false, frozen_time, ...clock.progress });
    });
  }

  #stop(): Promise<'completed' | 'failed'> {
    return this.#stores.postgres.transaction((transaction) => this.#end(transaction, { is_stopped: true }));
  }

  async #end(transaction: Transaction, result: Record<string, unknown>): Promise<'completed' | 'failed'> {
    const { ended } = await lockRun(transaction, this.#place);
    return ended ?? completeRun(transaction, this.#place, { result, now: this.#attempt.clock() });
  }
}

/** Throws the first failure: an advance that continued without the failed work would appear correct. */
function throwFirstFailure({ failed }: DueWorkReport, at: Milliseconds): void {
  const [first] = failed;
  if (!first) return;
  const { id, error } = first;
  if (!(error instanceof FarthingError)) throw error;
  const { code, message, details, http_status_code } = error;
  throw new FarthingError(code, `${id} at ${formatMs(at)}: ${message}`, { details, http_status_code, cause: error });
}

function countDone({ done }: ClockProgress): number {
  return Object.values(done).reduce((sum, count) => sum + count, 0);
}

function formatNames(kinds: readonly DueWork[]): string {
  return kinds.map(({ name }) => name).join(', ');
}
