/**
 * Everything that falls due at an instant of its own, in the order in which it is done where several things are due at one. The
 * scheduler makes a job of each, for all environments that go by the clock of the machine; the clock of an environment asks each
 * when it is due next there, and does it at that instant (actions/test-clocks/advance-test-clock.ts). A new kind is a line here and nothing
 * elsewhere.
 */
import type { Scope } from '../../core/scope.ts';
import { nextAlertCheck } from '../../storage/due-alerts.ts';
import {
  type DueEnvironments,
  type Instant,
  loadInstants,
  nextDraftRested,
  nextSubscriptionDue,
  nextThresholdCheck,
  nextUnpaidEnd,
} from '../../storage/due-billing.ts';
import { nextExportDue } from '../../storage/due-exports.ts';
import { nextGrantDue } from '../../storage/due-grants.ts';
import { nextLateUsage } from '../../storage/due-late-usage.ts';
import { nextGracePeriodEnd, nextOverdue, nextPaymentDue } from '../../storage/due-payments.ts';
import { nextReservationDue } from '../../storage/due-reservations.ts';
import { nextExpiry, nextSelfFilling } from '../../storage/due-wallets.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { checkAlerts } from '../alerts/check-alerts.ts';
import { cutDueFiles } from '../exports/cut.ts';
import { addDueExports } from '../exports/due-exports.ts';
import { applyAllDueGrants } from '../grants/apply-due-grants.ts';
import { finalizeDueInvoices } from '../invoices/finalize-due-invoices.ts';
import { processDuePayments } from '../payments/due-payments.ts';
import { emitOverdue } from '../payments/emit-overdue.ts';
import { cancelOverdue } from '../payments/end-overdue.ts';
import { endDueReservations } from '../reservations/end-due.ts';
import { endUnpaid } from '../subscriptions/end-unpaid.ts';
import { topUpDueWallets } from '../wallets/auto-top-up.ts';
import { expireCredits } from '../wallets/expire-credits.ts';
import type { Interruptible } from './batch-loop.ts';
import { billLateUsage } from './bill-late-usage.ts';
import { billDuePeriods, type UnqueuedAlertChecks } from './bill-period.ts';
import { billThresholds } from './bill-thresholds.ts';
import type { ClockAdvancePlanCache } from './clock-advance-plan-cache.ts';
import { findAlertCheck, findThresholdCheck } from './next-threshold-check.ts';

export type DueWork = {
  /** Of the job. */
  readonly name: string;
  /** Where it is not as often as billing. */
  readonly every_seconds?: number;
  /** When the next of this environment is due, which may be over; null where none will be by itself. `from` is where its clock stands. */
  next(database: Database, scope: Scope, from: Date): Instant;
  /** Of what has no instant of its own, where `next` says that there is any: when to look for it, after `from`. */
  nextCheck?(stores: Stores, scope: Scope, from: Date): Promise<Date | null>;
  /** Does all that is due by `now`: of the environment that is named, or of all that have no clock. May run twice at once. */
  run(stores: Stores, due: DueWorkRun): Promise<DueWorkReport>;
  /**
   * It says itself what becomes of the plans in hand (`minds`), or writes nothing that a plan is made from (`leaves`); any other kind may
   * change what they were made from, so that they are forgotten.
   */
  readonly draft_plan_cache?: 'minds' | 'leaves';
  /** It asks whether it may go on, and who goes on with it does the rest. What looks at each once in a run does not: it would begin at the first again. */
  readonly is_interruptible?: true;
  /** Others do it, who may take long: the advance of a clock waits for them, and lets other clocks have its place meanwhile. */
  readonly is_done_elsewhere?: true;
};

type DueWorkRun = DueEnvironments & {
  readonly now: Date;
  readonly onDone?: OnDone;
  /** Of an advance of a clock. */
  readonly plans?: ClockAdvancePlanCache;
} & Interruptible;

/** What was done so far of a run that goes on, as counts. */
export type OnDone = (done: DueWorkReport['done']) => void | Promise<void>;

export type DueWorkReport = {
  /** What was done, as counts. */
  readonly done: Readonly<Record<string, number>>;
  /** What was left, because its usage is not complete. */
  readonly waiting: readonly string[];
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
  /** Done, too; but the look at their alerts could not be asked for, so that they wait for that of the hour. */
  readonly without_alert_checks?: readonly UnqueuedAlertChecks[];
};

export type DueWorkSettings = { readonly FINALIZATION_DELAY_SECONDS: number; readonly EXPORT_DELAY_SECONDS: number };

export function listDueWork(settings: DueWorkSettings): DueWork[] {
  const delay_seconds = settings.FINALIZATION_DELAY_SECONDS;
  return [
    {
      name: 'bill-due-periods',
      is_interruptible: true,
      next: nextSubscriptionDue,
      draft_plan_cache: 'minds',
      async run(stores, { now, only, onDone, mayGoOn, plans }) {
        const onProgress = ({ billed }: { billed: number }) => onDone?.({ billed });
        const { billed, ...others } = await billDuePeriods(stores, now, { only, onProgress, mayGoOn, plans });
        return { done: { billed }, ...others };
      },
    },
    {
      // Subscriptions that were never paid for (docs/rules/subscriptions.md, "States").
      name: 'end-unpaid-subscriptions',
      is_interruptible: true,
      next: nextUnpaidEnd,
      async run(stores, due) {
        const { ended, failed } = await endUnpaid(stores, due);
        return { done: { ended }, waiting: [], failed };
      },
    },
    {
      // Credits that plans, add-ons and subscriptions give (docs/rules/credits.md, "Applications"): behind what ends then.
      name: 'apply-credit-grants',
      is_interruptible: true,
      next: nextGrantDue,
      // Credits come to an invoice when it is final, from what is in the wallets then.
      draft_plan_cache: 'leaves',
      async run(stores, { now, only, onDone, mayGoOn }) {
        const onProgress = ({ granted }: { granted: number }) => onDone?.({ granted });
        const { granted, failed } = await applyAllDueGrants(stores, { now, only, onProgress, mayGoOn });
        return { done: { granted }, waiting: [], failed };
      },
    },
    {
      // Drafts that have rested since they were computed (docs/rules/invoices.md, "From draft to final").
      name: 'finalize-due-invoices',
      is_interruptible: true,
      next: (database, scope) => nextDraftRested(database, scope, { delay_seconds }),
      draft_plan_cache: 'minds',
      async run(stores, { now, only, onDone, mayGoOn, plans }) {
        const onProgress = ({ finalized, skipped }: { finalized: number; skipped: number }) =>
          onDone?.({ finalized, skipped });
        const due = { now, delay_seconds, only, onProgress, mayGoOn, plans };
        const { finalized, skipped, waiting, failed } = await finalizeDueInvoices(stores, due);
        return { done: { finalized, skipped }, waiting, failed };
      },
    },
    {
      // Usage of what has ended (docs/rules/invoices.md, "Late events").
      name: 'bill-late-usage',
      next: nextLateUsage,
      async run(stores, { now, only, onDone }) {
        const onProgress = ({ drafted, looked }: { drafted: number; looked: number }) => onDone?.({ drafted, looked });
        const { drafted, looked, failed } = await billLateUsage(stores, now, { only, onProgress });
        return { done: { drafted, looked }, waiting: [], failed };
      },
    },
    {
      // Payments to be tried, or to be asked after (docs/rules/payments.md, "Tried again").
      name: 'pursue-payments',
      is_interruptible: true,
      next: nextPaymentDue,
      async run(stores, due) {
        const { processed: pursued, failed } = await processDuePayments(stores, due);
        return { done: { pursued }, waiting: [], failed };
      },
    },
    {
      // Invoices whose due date has passed (docs/rules/payments.md, "Overdue").
      name: 'tell-overdue-invoices',
      is_interruptible: true,
      next: nextOverdue,
      // That it was told is all that is written.
      draft_plan_cache: 'leaves',
      async run(stores, due) {
        const { emitted: reported, failed } = await emitOverdue(stores, due);
        return { done: { told: reported }, waiting: [], failed };
      },
    },
    {
      // Subscriptions whose invoices were not paid for too long (docs/rules/payments.md, "After the grace period").
      name: 'end-overdue-subscriptions',
      is_interruptible: true,
      next: nextGracePeriodEnd,
      async run(stores, due) {
        const { ended, failed } = await cancelOverdue(stores, due);
        return { done: { ended }, waiting: [], failed };
      },
    },
    {
      // Reservations whose time is over, and events of those that were committed (docs/rules/reservations.md, "How it ends").
      name: 'end-reservations',
      every_seconds: 10,
      next: (database, scope, from) => nextReservationDue(database, scope, { from }),
      async run(stores, due) {
        const { ended, sent, failed, uncharged } = await endDueReservations(stores, due);
        // Told by the job once; the clock of an environment goes on past what has ended.
        const reported = due.only ? failed : [...failed, ...uncharged];
        return { done: { ended, sent, uncharged: uncharged.length }, waiting: [], failed: reported };
      },
    },
    {
      // Credits that nobody can use any more (docs/rules/wallets.md, "Expiry"); behind the invoices that may use them.
      name: 'expire-credits',
      is_interruptible: true,
      next: nextExpiry,
      draft_plan_cache: 'leaves',
      async run(stores, due) {
        const { expired, failed } = await expireCredits(stores, due);
        return { done: { expired }, waiting: [], failed };
      },
    },
    {
      // Wallets whose credits have fallen to their threshold (docs/rules/wallets.md, "Filled by itself").
      name: 'top-up-wallets',
      next: (database, scope, from) => nextSelfFilling(database, scope, { from }),
      async run(stores, due) {
        const { filled, failed } = await topUpDueWallets(stores, due);
        return { done: { filled }, waiting: [], failed };
      },
    },
    {
      // Usage that has reached a threshold (docs/rules/invoices.md, "Before the period is over").
      name: 'bill-thresholds',
      next: (database, scope, from) => nextThresholdCheck(database, scope, { from }),
      nextCheck: findThresholdCheck,
      async run(stores, { now, only, onDone }) {
        const onProgress = ({ invoiced }: { invoiced: number }) => onDone?.({ invoiced });
        const { invoiced, failed } = await billThresholds(stores, now, { only, onProgress });
        return { done: { invoiced }, waiting: [], failed };
      },
    },
    {
      // Alerts that usage and wallets have not asked for, because a process ended in between (docs/rules/alerts.md, "When it is looked").
      name: 'watch-alerts',
      every_seconds: 3600,
      next: (database, scope, from) => nextAlertCheck(database, scope, { from }),
      nextCheck: findAlertCheck,
      async run(stores, { now, only, onDone }) {
        const onProgress = ({ alerted }: { alerted: number }) => onDone?.({ alerted });
        const { alerted, failed } = await checkAlerts(stores, { now, only, onProgress });
        return { done: { alerted }, waiting: [], failed };
      },
    },
    {
      // Files of schedules (docs/rules/exports.md, "Scheduled exports"): behind what the records of that instant are.
      name: 'add-due-exports',
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
  ];
}

/** When each of them is due next in this environment, asked in one statement. */
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
