/**
 * Processes due payments: attempts and status checks, concurrently and outside transactions. Payments of one connection are processed one
 * at a time and in a separate slot. So a provider that does not answer delays only the payments of its own account. After such a failure
 * the connection pauses, and its other payments wait for the end of the pause.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
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
  /** Nothing begins after this instant of the clock; the next run continues. Default: the run processes all that is due. */
  readonly until?: Date | undefined;
};

/**
 * Maximum number of payments in progress, of all connections. A payment that waits for its provider holds no connection
 * to the database.
 */
const AT_ONCE = 32;
/** Maximum number of payments of one tenant that are in progress and need no connection. */
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
  /**
   * End of the pause per lane, for pauses that began during this run. A lane is a connection, or a tenant's payments
   * without one.
   */
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

  /** Waits until a payment ends. While slots are free, the wait is limited: other payments may become due. */
  async #waitForNext(): Promise<void> {
    const waitForEnd = () => Promise.race(Array.from(this.#atWork.values(), ({ ended }) => ended));
    await (this.#mayBegin() ? runWithTimeout(waitForEnd, LIST_AGE_MS) : waitForEnd());
  }

  #mayBegin(): boolean {
    const { until } = this.#input;
    if (until !== undefined && this.#clock() >= until) this.#isInterrupted = true;
    return this.#atWork.size < AT_ONCE && !this.#isInterrupted;
  }

  #isListOld(): boolean {
    return this.#clock().getTime() - this.#listedAt >= LIST_AGE_MS;
  }

  /**
   * Replaces the list. Tenants alternate in it, and so do the lanes of each tenant. So many payments of one connection do not delay the
   * payments of another.
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
    const ended = this.#process(due).finally(() => this.#atWork.delete(due.id));
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

  /** Records the pause that this payment caused. The list may have been loaded before the pause began. */
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
