/**
 * Processes due payments: attempts and status checks, concurrently and outside transactions. Only one payment per connection is in
 * progress, so a provider that does not answer delays only its own payments. After such a failure the connection pauses, and its payments
 * wait for the end of the pause. A slow call of a provider frees its slot, so that many hanging calls delay no other payments.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { PromptSlots } from '../../../storage/concurrency/prompt-slots.ts';
import { runWithTimeout } from '../../../storage/foundation/in-time.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { DueEnvironments } from '../../../storage/queue/due-billing.ts';
import { type DuePayment, findPauseEnd, listDuePayments } from '../../../storage/queue/due-payments.ts';
import type { Interruptible } from '../../foundation/batch-loop.ts';
import { listOwnGateways } from '../../foundation/connections/payment-gateways.ts';
import { resumePayment } from './process-payment.ts';

type DuePaymentsReport = { processed: number; failed: { id: string; error: unknown }[] };
type DuePaymentsInput = { readonly now: Date } & RunTime & DueEnvironments & Interruptible;
type RunTime = {
  /** Clock of a run, which starts at `now`. Default: the time stays at `now`. */
  readonly clock?: (() => Date) | undefined;
  /** No payment begins after this instant of the clock; the next run continues. By default the run processes all due payments. */
  readonly until?: Date | undefined;
  /** Duration after which a payment in progress counts as slow. Tests set a short one. */
  readonly slow_after_ms?: number;
};

/** Maximum number of payments in progress, not counting slow ones that call a provider. */
const AT_ONCE = 32;
/**
 * Maximum number of payments in progress, including slow ones, which occupy no database connection. If every provider hangs for its 30
 * seconds, 32 payments begin every 3 seconds: 320 in total, which is below this limit.
 */
const AT_ONCE_WITH_SLOW = 512;
const SLOW_AFTER_MS = 3_000;
/** Maximum number of payments in progress per tenant that use no connection to a provider. */
const AT_ONCE_TENANT = 4;
/**
 * Maximum age of the list while slots are free. So a payment that becomes due during a run waits at most this long for
 * a free slot.
 */
const LIST_AGE_MS = 2_000;

export async function processDuePayments(stores: Stores, input: DuePaymentsInput): Promise<DuePaymentsReport> {
  return new DuePaymentsRun(stores, input).runToEnd();
}

class DuePaymentsRun {
  readonly #stores: Stores;
  readonly #input: DuePaymentsInput;
  readonly #clock: () => Date;
  readonly #report: DuePaymentsReport = { processed: 0, failed: [] };
  /** Payments that were listed and have not begun. */
  #listed: DuePayment[] = [];
  #listedAt = Number.NEGATIVE_INFINITY;
  readonly #atWork = new Map<string, { readonly lane: string; readonly ended: Promise<void> }>();
  readonly #slots: PromptSlots;
  /** End of each pause that began during this run, by lane (`toLane`). */
  readonly #pausedUntil = new Map<string, Date>();
  /**
   * Ids of payments that are still due after one step. The next run processes them again, so that this run never calls a provider in a
   * loop.
   */
  readonly #left: string[] = [];
  #isInterrupted = false;

  constructor(stores: Stores, input: DuePaymentsInput) {
    this.#stores = stores;
    this.#input = input;
    this.#clock = input.clock ?? (() => input.now);
    const slow_after_ms = input.slow_after_ms ?? SLOW_AFTER_MS;
    this.#slots = new PromptSlots({ at_once: AT_ONCE, with_slow: AT_ONCE_WITH_SLOW, slow_after_ms });
  }

  async runToEnd(): Promise<DuePaymentsReport> {
    for (;;) {
      const begun = await this.#beginListed();
      if (this.#mayBegin() && (begun === 0 || this.#isListOld())) {
        await this.#list();
        await this.#beginListed();
      }
      if (this.#atWork.size === 0) return this.#report;
      await this.#waitForNext();
    }
  }

  /**
   * Waits until a payment ends. While slots are free, it waits at most until the list must be refreshed. Otherwise it also returns when a
   * payment becomes slow, which frees its slot.
   */
  async #waitForNext(): Promise<void> {
    const waitForEnd = () => Promise.race(Array.from(this.#atWork.values(), ({ ended }) => ended));
    const limit_ms = this.#mayBegin() ? LIST_AGE_MS : this.#slots.computeWait();
    await (limit_ms === null || this.#isInterrupted ? waitForEnd() : runWithTimeout(waitForEnd, limit_ms));
  }

  #mayBegin(): boolean {
    const { until } = this.#input;
    if (until !== undefined && this.#clock() >= until) this.#isInterrupted = true;
    return this.#slots.hasFree && !this.#isInterrupted;
  }

  #isListOld(): boolean {
    return this.#clock().getTime() - this.#listedAt >= LIST_AGE_MS;
  }

  /**
   * Loads the due payments again. In the list tenants alternate, and so do the lanes of each tenant, so many payments of one connection do
   * not delay those of another.
   */
  async #list(): Promise<void> {
    const { only } = this.#input;
    const left = [...this.#left, ...this.#atWork.keys()];
    const now = this.#clock();
    this.#listed = await listDuePayments(this.#stores.postgres, { now, left, only });
    this.#listedAt = now.getTime();
  }

  /** Returns the number of payments that were begun. */
  async #beginListed(): Promise<number> {
    for (let begun = 0; ; begun++) {
      if (!this.#mayBegin()) return begun;
      const index = this.#listed.findIndex((due) => this.#hasRoom(due));
      if (index < 0) return begun;
      this.#isInterrupted = (await this.#input.mayGoOn?.()) === false;
      if (this.#isInterrupted) return begun;
      this.#begin(this.#listed.splice(index, 1)[0]!);
    }
  }

  #hasRoom(due: DuePayment): boolean {
    const lane = toLane(due);
    const paused_until = this.#pausedUntil.get(lane);
    if (paused_until !== undefined && paused_until > this.#clock()) return false;
    const busy = [...this.#atWork.values()].filter((one) => one.lane === lane).length;
    return busy < (isConnected(due) ? 1 : AT_ONCE_TENANT);
  }

  #begin(due: DuePayment): void {
    this.#slots.take(due.id, { can_hang: isConnected(due) || due.reads_counterparts });
    const ended = this.#process(due).finally(() => {
      this.#atWork.delete(due.id);
      this.#slots.free(due.id);
    });
    this.#atWork.set(due.id, { lane: toLane(due), ended });
  }

  async #process(due: DuePayment): Promise<void> {
    const { id, tenant_id, environment_id } = due;
    const scope = { tenant_id, environment_id };
    const now = this.#clock();
    try {
      await resumePayment(this.#stores, scope, { id, by: { now } });
      if (isConnected(due)) await this.#notePause(due);
      if (await isStillDue(this.#stores, scope, { id, now })) this.#left.push(id);
      else this.#report.processed += 1;
    } catch (error) {
      this.#left.push(id);
      this.#report.failed.push({ id, error });
    }
  }

  /** Records a pause of the connection that this payment caused, because the current list may still contain payments of that connection. */
  async #notePause(due: DuePayment): Promise<void> {
    const paused_until = await findPauseEnd(this.#stores.postgres, due);
    if (paused_until !== null) this.#pausedUntil.set(toLane(due), paused_until);
  }
}

function isConnected({ payment_gateway }: DuePayment): boolean {
  return payment_gateway !== null && !listOwnGateways()[payment_gateway];
}

/**
 * Returns the lane of a payment: its connection, otherwise its tenant. The limits of concurrency and the pauses are per
 * lane.
 */
function toLane(due: DuePayment): string {
  const { tenant_id, environment_id, payment_gateway } = due;
  return isConnected(due) ? `${tenant_id} ${environment_id} ${payment_gateway}` : tenant_id;
}

async function isStillDue({ postgres }: Stores, scope: Scope, { id, now }: { id: string; now: Date }) {
  const [due] = await PaymentModel.in(scope, postgres)
    .where({ id, status: 'published' })
    .where('next_attempt_at', '<=', now.toISOString())
    .select('id');
  return due !== undefined;
}
