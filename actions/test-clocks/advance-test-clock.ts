/**
 * Advances the clock of an environment: finds the next instant at which something is due there, moves the clock to it, does it by the
 * actions that do it everywhere, and goes on until the target (docs/rules/clock.md, "Advancing"). How far it is stands in the row of
 * the clock, so that any worker can go on; two that do so at once are kept apart by the rows, as two schedulers are.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../core/error.ts';
import { addProgress, type ClockProgress } from '../../core/test-clock/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../../core/time/instant.ts';
import { TestClockModel } from '../../storage/models/test-clock.ts';
import { refreshStatistics } from '../../storage/postgres/statistics.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { beginAdvance, endBrokenAdvance, finishAdvance, lockAdvance } from '../../storage/test-clocks.ts';
import { ClockAdvancePlanCache } from '../billing/clock-advance-plan-cache.ts';
import {
  type DueWork,
  type DueWorkReport,
  type DueWorkSettings,
  listDueWork,
  listNextDueTimes,
} from '../billing/due-work.ts';
import { completeRun, lockRun, type RunAttempt, type RunReference, requeueRun, tryRun } from '../workflows/run.ts';
import { ADVANCE_JOB } from './move-test-clock.ts';
import { waitForLog } from './wait-for-log.ts';

type AdvanceOutcome = 'completed' | 'failed' | 'overtaken';

/** `overtaken`: it waits for others, and another job goes on with it. */
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

/** Where somebody else holds what is due, or its usage is not complete yet. */
const RETRY_MS = 20;
const IDLE_MAX = 500;
/** Where others do what is due, it is looked less and less often whether they have. */
const ELSEWHERE_MS_MAX = 500;
/** Then it lets other clocks have its place meanwhile: those of its tenant's other environments wait for it, and so may those of others. */
const SLOT_MS = 3_000;

/** An advance fills these tables with years of rows in a minute; the database refreshes its statistics as rarely (docs/decisions/0023-indexes-and-statistics.md). */
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
  /** For so long it has waited for what others do, and nothing else. */
  #elsewhere_ms = 0;
  /** When so much is done the database looks at how it is spread, and then at twice as much. */
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
      // What cannot be done now fails soon, which whoever went on would begin to wait for anew.
      const isOver = this.#idle === 0 && !(await this.#mayGoOn());
      if (isOver || this.#elsewhere_ms > SLOT_MS) return this.#yieldSlot();
    }
    return this.#stop();
  }

  /** Nothing is written while it advances: what was accepted before has come through when it has moved. */
  async #waitsForLog(): Promise<boolean> {
    const clock = await this.#clock();
    return clock !== null && toInstant(clock.frozen_time) === toInstant(clock.advanced_from);
  }

  /** Asked between what is done at an instant as well, of which there may be much: whoever goes on ends the instant as if this one had been killed. */
  async #mayGoOn(): Promise<boolean> {
    this.#isSliceOver ||= (await this.#attempt.mayGoOn?.()) === false;
    return !this.#isSliceOver;
  }

  /** How far it is, and what it waits for, is in the database, so whoever goes on does and waits for the same. */
  async #yieldSlot(): Promise<'overtaken'> {
    await this.#stores.postgres.transaction(async (transaction) => {
      await finishAdvance(transaction, this.#place, this.#worker);
      await requeueRun(transaction, this.#place, ADVANCE_JOB);
    });
    return 'overtaken';
  }

  /** The clock while it is this run that advances it; null after it was stopped. */
  async #clock(): Promise<TestClockModel | null> {
    const { workflow_id } = this.#place;
    const [clock] = await this.#mine(this.#stores.postgres, workflow_id);
    return clock ?? null;
  }

  #mine(database: Stores['postgres'], workflow_id: string) {
    return TestClockModel.in(this.#place, database).where({ workflow_id, test_clock_status: 'advancing' });
  }

  /**
   * Whoever advanced it before may have ended, or failed, between the move to an instant and what is looked at there, which is due behind
   * where the clock stands alone: it is looked at once more. What was done is not done again.
   */
  async #endBrokenStep(): Promise<void> {
    const clock = await this.#clock();
    const at = clock && toInstant(clock.frozen_time);
    if (at === null || (at === toInstant(clock!.advanced_from) && !clock!.is_at_failure)) return;
    const instants = await this.#instants(at - 1);
    await this.#step(clock!, { at, kinds: this.#kinds.filter((_, index) => instants[index] === at) });
  }

  /** When something is due next, and what it is; in infinity where nothing is. */
  async #next({ frozen_time }: TestClockModel): Promise<{ at: Milliseconds; kinds: DueWork[] }> {
    const instants = await this.#instants(toInstant(frozen_time));
    const at = Math.min(...instants);
    return { at, kinds: this.#kinds.filter((_, index) => instants[index] === at) };
  }

  /** Of each kind, behind `from`. */
  async #instants(from: Milliseconds): Promise<Milliseconds[]> {
    const { tenant_id, environment_id } = this.#place;
    const dueQuery = { scope: { tenant_id, environment_id }, from: new Date(from) };
    const due = await listNextDueTimes(this.#stores, this.#kinds, dueQuery);
    return due.map((one) => one?.getTime() ?? Number.POSITIVE_INFINITY);
  }

  /** Everything of these kinds that is due at the instant; what follows from it at the same instant is the next step. */
  async #step(clock: TestClockModel, { at, kinds }: { at: Milliseconds; kinds: readonly DueWork[] }): Promise<void> {
    if (!(await this.#move(clock, at))) return;
    const { tenant_id, environment_id } = this.#place;
    let { progress } = clock;
    // Behind what begins anew with whoever goes on the step is ended, or it might never be.
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
    // Whoever goes on with it finds the clock there already.
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

/** A test that went on without what failed would look right. */
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
