/**
 * All work with a due time of its own. Work due at one instant runs in the order of DUE_WORK_NAMES. The scheduler makes a job of each kind,
 * for all environments that follow the machine's clock. The clock of an environment reads when each kind is due next and runs it at that
 * instant (actions/schedule/test-clocks/advance-test-clock.ts). A new kind needs a name in DUE_WORK_NAMES and an entry in this file; the
 * compiler requires both.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { HOUR_SECONDS } from '../../core/foundation/time/durations.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import { nextAlertCheck } from '../../storage/queue/due-alerts.ts';
import {
  type DueEnvironments,
  type Instant,
  loadInstants,
  nextDraftRested,
  nextSubscriptionDue,
  nextThresholdCheck,
  nextUnpaidEnd,
} from '../../storage/queue/due-billing.ts';
import { nextExportDue } from '../../storage/queue/due-exports.ts';
import { nextGrantDue } from '../../storage/queue/due-grants.ts';
import { nextLateUsage } from '../../storage/queue/due-late-usage.ts';
import { nextGracePeriodEnd, nextOverdue, nextPaymentDue } from '../../storage/queue/due-payments.ts';
import { nextReservationDue } from '../../storage/queue/due-reservations.ts';
import { nextExpiry, nextSelfFilling } from '../../storage/queue/due-wallets.ts';
import { checkAlerts } from '../alerts/check-alerts.ts';
import { applyAllDueGrants } from '../credits/grants/apply-due-grants.ts';
import { expireCredits } from '../credits/wallets/expire-credits.ts';
import type { Interruptible } from '../foundation/batch-loop.ts';
import { DUE_WORK_NAMES, type DueWorkName } from '../foundation/due-work-names.ts';
import type { ClockAdvancePlanCache } from '../invoicing/billing/clock-advance-plan-cache.ts';
import { billLateUsage } from '../lifecycle/billing/bill-late-usage.ts';
import { billDuePeriods, type UnqueuedAlertChecks } from '../lifecycle/billing/bill-period.ts';
import { billThresholds } from '../lifecycle/billing/bill-thresholds.ts';
import { finalizeDueInvoices } from '../lifecycle/invoices/finalize-due-invoices.ts';
import { processDuePayments } from '../lifecycle/payments/due-payments.ts';
import { cancelOverdue } from '../lifecycle/payments/end-overdue.ts';
import { endUnpaid } from '../lifecycle/subscriptions/end-unpaid.ts';
import { topUpDueWallets } from '../lifecycle/wallets/auto-top-up.ts';
import { emitOverdue } from '../payments/emit-overdue.ts';
import { cutDueFiles } from '../reporting/exports/cut.ts';
import { addDueExports } from '../reporting/exports/due-exports.ts';
import { endDueReservations } from '../reservations/end-due.ts';
import { findAlertCheck, findThresholdCheck } from './next-threshold-check.ts';

export type DueWork = {
  readonly name: DueWorkName;
  /** Interval of the scheduler's job; default: that of the billing jobs. */
  readonly every_seconds?: number;
  /**
   * When the next work of this environment is due, possibly in the past; null if no work has a due time. `from` is the time of its clock.
   */
  next(database: Database, scope: Scope, from: Date): Instant;
  /**
   * Finds the next check after `from`, for work without a due time of its own. Called only if `next` shows that there
   * is such work.
   */
  nextCheck?(stores: Stores, scope: Scope, from: Date): Promise<Date | null>;
  /** Does all work due by `now`, for the environment in `only` or for all without a clock. Two runs may overlap. */
  run(stores: Stores, due: DueWorkRun): Promise<DueWorkReport>;
  /**
   * Effect of this kind of work on the draft-plan cache. `minds`: it manages the cache itself. `leaves`: it writes no
   * input of a plan. Default: it may change inputs, so the cache is cleared.
   */
  readonly draft_plan_cache?: 'minds' | 'leaves';
  /**
   * True if a run calls `mayGoOn` and may stop early, so that a later run continues. Work that checks each record once per run is not
   * interruptible, because a later run would begin with the first record again.
   */
  readonly is_interruptible?: true;
  /**
   * True if other processes do the work, which may take long. The clock advance waits for them and yields its slot to other clocks
   * meanwhile.
   */
  readonly is_done_elsewhere?: true;
};

type DueWorkRun = DueEnvironments & {
  readonly now: Date;
  readonly onDone?: OnDone;
  /**
   * Set by the scheduler: `clock` is the current time during the run, which starts at `now`; `until` is the end of work that waits for
   * other services.
   */
  readonly clock?: () => Date;
  readonly until?: Date;
  /** Set by a clock advance. */
  readonly plans?: ClockAdvancePlanCache;
} & Interruptible;

/** Receives the counts of work done so far while the run continues. */
type OnDone = (done: DueWorkReport['done']) => void | Promise<void>;

export type DueWorkReport = {
  readonly done: Readonly<Record<string, number>>;
  /** Ids of records that wait until their usage is complete. */
  readonly waiting: readonly string[];
  /** Ids of records that wait until their seller has a name (docs/rules/documents.md, "The seller"). */
  readonly without_seller?: readonly string[];
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
  /** Records whose work is done, but whose alert checks could not be enqueued; the hourly sweep will run the checks. */
  readonly without_alert_checks?: readonly UnqueuedAlertChecks[];
};

export type DueWorkSettings = { readonly FINALIZATION_DELAY_SECONDS: number; readonly EXPORT_DELAY_SECONDS: number };

export function listDueWork(settings: DueWorkSettings): DueWork[] {
  const delay_seconds = settings.FINALIZATION_DELAY_SECONDS;
  const kinds: Record<DueWorkName, Omit<DueWork, 'name'>> = {
    'bill-due-periods': {
      is_interruptible: true,
      next: nextSubscriptionDue,
      draft_plan_cache: 'minds',
      async run(stores, { now, only, onDone, mayGoOn, plans }) {
        const onProgress = ({ billed }: { billed: number }) => onDone?.({ billed });
        const { billed, ...others } = await billDuePeriods(stores, now, { only, onProgress, mayGoOn, plans });
        return { done: { billed }, ...others };
      },
    },
    // Subscriptions that were never paid for (docs/rules/subscriptions.md, "States").
    'end-unpaid-subscriptions': {
      is_interruptible: true,
      next: nextUnpaidEnd,
      async run(stores, due) {
        const { ended, failed } = await endUnpaid(stores, due);
        return { done: { ended }, waiting: [], failed };
      },
    },
    // Credits of plans, add-ons and subscriptions (docs/rules/credits.md, "Applications"); runs after everything that ends at the same
    // instant.
    'apply-credit-grants': {
      is_interruptible: true,
      next: nextGrantDue,
      // An invoice uses credits at finalization, from the wallets of that time.
      draft_plan_cache: 'leaves',
      async run(stores, { now, only, onDone, mayGoOn }) {
        const onProgress = ({ granted }: { granted: number }) => onDone?.({ granted });
        const { granted, failed } = await applyAllDueGrants(stores, { now, only, onProgress, mayGoOn });
        return { done: { granted }, waiting: [], failed };
      },
    },
    // Drafts whose delay after their computation is over (docs/rules/invoices.md, "From draft to final").
    'finalize-due-invoices': {
      is_interruptible: true,
      next: (database, scope) => nextDraftRested(database, scope, { delay_seconds }),
      draft_plan_cache: 'minds',
      async run(stores, { now, only, onDone, mayGoOn, plans }) {
        const onProgress = ({ finalized, skipped }: { finalized: number; skipped: number }) =>
          onDone?.({ finalized, skipped });
        const due = { now, delay_seconds, only, onProgress, mayGoOn, plans };
        const { finalized, skipped, ...others } = await finalizeDueInvoices(stores, due);
        return { done: { finalized, skipped }, ...others };
      },
    },
    // Late usage of ended subscriptions (docs/rules/invoices.md, "Late events").
    'bill-late-usage': {
      next: nextLateUsage,
      async run(stores, { now, only, onDone }) {
        const onProgress = ({ drafted, looked }: { drafted: number; looked: number }) => onDone?.({ drafted, looked });
        const { drafted, looked, failed } = await billLateUsage(stores, now, { only, onProgress });
        return { done: { drafted, looked }, waiting: [], failed };
      },
    },
    // Payments to try, or to query at the provider (docs/rules/payments.md, "Tried again").
    'pursue-payments': {
      is_interruptible: true,
      next: nextPaymentDue,
      async run(stores, due) {
        const { processed: pursued, failed } = await processDuePayments(stores, due);
        return { done: { pursued }, waiting: [], failed };
      },
    },
    // Invoices whose due date has passed (docs/rules/payments.md, "Overdue").
    'tell-overdue-invoices': {
      is_interruptible: true,
      next: nextOverdue,
      // The job writes only that the invoice was reported.
      draft_plan_cache: 'leaves',
      async run(stores, due) {
        const { emitted: reported, failed } = await emitOverdue(stores, due);
        return { done: { told: reported }, waiting: [], failed };
      },
    },
    // Subscriptions whose invoices are unpaid after the grace period (docs/rules/payments.md, "After the grace period").
    'end-overdue-subscriptions': {
      is_interruptible: true,
      next: nextGracePeriodEnd,
      async run(stores, due) {
        const { ended, failed } = await cancelOverdue(stores, due);
        return { done: { ended }, waiting: [], failed };
      },
    },
    // Expired reservations, and events of committed ones (docs/rules/reservations.md, "How it ends").
    'end-reservations': {
      every_seconds: 10,
      next: (database, scope, from) => nextReservationDue(database, scope, { from }),
      async run(stores, due) {
        const { ended, sent, failed, uncharged } = await endDueReservations(stores, due);
        // Reservations that could not be charged are failures of the scheduler's job only: any failure would stop a clock advance.
        const reported = due.only ? failed : [...failed, ...uncharged];
        return { done: { ended, sent, uncharged: uncharged.length }, waiting: [], failed: reported };
      },
    },
    // Expired credits (docs/rules/wallets.md, "Expiry"); runs after the invoices that may use them.
    'expire-credits': {
      is_interruptible: true,
      next: nextExpiry,
      draft_plan_cache: 'leaves',
      async run(stores, due) {
        const { expired, failed } = await expireCredits(stores, due);
        return { done: { expired }, waiting: [], failed };
      },
    },
    // Wallets whose balance has fallen to their threshold (docs/rules/wallets.md, "Automatic top-up").
    'top-up-wallets': {
      next: (database, scope, from) => nextSelfFilling(database, scope, { from }),
      async run(stores, due) {
        const { filled, failed } = await topUpDueWallets(stores, due);
        return { done: { filled }, waiting: [], failed };
      },
    },
    // Usage that has reached a threshold (docs/rules/invoices.md, "Before the period is over").
    'bill-thresholds': {
      next: (database, scope, from) => nextThresholdCheck(database, scope, { from }),
      nextCheck: findThresholdCheck,
      async run(stores, { now, only, onDone }) {
        const onProgress = ({ invoiced }: { invoiced: number }) => onDone?.({ invoiced });
        const { invoiced, ...others } = await billThresholds(stores, now, { only, onProgress });
        return { done: { invoiced }, waiting: [], ...others };
      },
    },
    // Alert checks that usage and wallets did not enqueue because a process ended in between (docs/rules/alerts.md, "When alerts are
    // checked").
    'watch-alerts': {
      every_seconds: HOUR_SECONDS,
      next: (database, scope, from) => nextAlertCheck(database, scope, { from }),
      nextCheck: findAlertCheck,
      async run(stores, { now, only, onDone }) {
        const onProgress = ({ alerted }: { alerted: number }) => onDone?.({ alerted });
        const { alerted, failed } = await checkAlerts(stores, { now, only, onProgress });
        return { done: { alerted }, waiting: [], failed };
      },
    },
    // Files of export schedules (docs/rules/exports.md, "Scheduled exports"); runs after the records of that instant are written.
    'add-due-exports': {
      every_seconds: 60,
      next: (database, scope, from) =>
        nextExportDue(database, scope, { from, delay_seconds: settings.EXPORT_DELAY_SECONDS }),
      draft_plan_cache: 'leaves',
      is_done_elsewhere: true,
      async run(stores, { now, only }) {
        const report = await addDueExports(stores, { now, only, delay_seconds: settings.EXPORT_DELAY_SECONDS });
        if (only) await cutDueFiles(stores, only, now);
        return report;
      },
    },
  };
  return DUE_WORK_NAMES.map((name) => ({ name, ...kinds[name] }));
}

/** Next due time of each kind in this environment, read in one statement. */
export async function listNextDueTimes(
  stores: Stores,
  kinds: readonly DueWork[],
  { scope, from }: { scope: Scope; from: Date },
): Promise<(Date | null)[]> {
  const queries = kinds.map((kind) => kind.next(stores.postgres, scope, from));
  const instants = await loadInstants(stores.postgres, queries);
  return Promise.all(
    kinds.map(async ({ nextCheck }, index) => {
      const due = instants[index] ?? null;
      return nextCheck && due ? nextCheck(stores, scope, from) : due;
    }),
  );
}
