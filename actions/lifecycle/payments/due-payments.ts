/**
 * Processes due payments: attempts and status checks, concurrently and outside transactions. A connection has one payment at work at a time,
 * and a slot of its own, so a provider that does not answer delays only the payments of its own account. After such a failure the connection
 * pauses, and its other payments wait for the end of the pause.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import type { DueEnvironments } from '../../../storage/queue/due-billing.ts';
import { type DuePayment, listDuePayments } from '../../../storage/queue/due-payments.ts';
import type { Interruptible } from '../../foundation/batch-loop.ts';
import { listOwnGateways } from '../../foundation/connections/payment-gateways.ts';
import { resumePayment } from './process-payment.ts';

type DuePaymentsReport = { processed: number; failed: { id: string; error: unknown }[] };
type DuePaymentsInput = { readonly now: Date } & DueEnvironments & Interruptible;

/** Payments at work, of all connections. A payment that waits for its provider holds no connection to the database. */
const AT_ONCE = 32;
/** Payments at work of a tenant that call no connection. */
const AT_ONCE_TENANT = 4;

export async function processDuePayments(stores: Stores, input: DuePaymentsInput): Promise<DuePaymentsReport> {
  return new DuePaymentsRun(stores, input).runToEnd();
}

class DuePaymentsRun {
  readonly #stores: Stores;
  readonly #input: DuePaymentsInput;
  readonly #report: DuePaymentsReport = { processed: 0, failed: [] };
  /** Payments that were listed and have not begun. */
  #listed: DuePayment[] = [];
  readonly #atWork = new Map<string, { readonly lane: string; readonly ended: Promise<void> }>();
  /** Payments that are still due after their step: the next run makes the next one, so that no provider is called in a loop. */
  readonly #left: string[] = [];
  #isInterrupted = false;

  constructor(stores: Stores, input: DuePaymentsInput) {
    this.#stores = stores;
    this.#input = input;
  }

  async runToEnd(): Promise<DuePaymentsReport> {
    for (;;) {
      await this.#beginListed();
      if (this.#atWork.size < AT_ONCE && !this.#isInterrupted) {
        await this.#list();
        await this.#beginListed();
      }
      if (this.#atWork.size === 0) return this.#report;
      await Promise.race(Array.from(this.#atWork.values(), ({ ended }) => ended));
    }
  }

  /** Replaces the list: the tenants alternate in it, so the many payments of one of them never hide those of another. */
  async #list(): Promise<void> {
    const { now, only } = this.#input;
    const left = [...this.#left, ...this.#atWork.keys()];
    this.#listed = await listDuePayments(this.#stores.postgres, { now, left, only });
  }

  async #beginListed(): Promise<void> {
    while (this.#atWork.size < AT_ONCE && !this.#isInterrupted) {
      const index = this.#listed.findIndex((due) => this.#hasRoom(due));
      if (index < 0) return;
      this.#isInterrupted = (await this.#input.mayGoOn?.()) === false;
      if (!this.#isInterrupted) this.#begin(this.#listed.splice(index, 1)[0]!);
    }
  }

  #hasRoom(due: DuePayment): boolean {
    const lane = toLane(due);
    const busy = [...this.#atWork.values()].filter((one) => one.lane === lane).length;
    return busy < (isConnected(due) ? 1 : AT_ONCE_TENANT);
  }

  #begin(due: DuePayment): void {
    const lane = toLane(due);
    const ended = this.#process(due).finally(() => {
      this.#atWork.delete(due.id);
      // The connection may pause now, so its payments are listed again.
      if (isConnected(due)) this.#listed = this.#listed.filter((one) => toLane(one) !== lane);
    });
    this.#atWork.set(due.id, { lane, ended });
  }

  async #process({ id, tenant_id, environment_id }: DuePayment): Promise<void> {
    const { now } = this.#input;
    const scope = { tenant_id, environment_id };
    try {
      await resumePayment(this.#stores, scope, { id, by: { now } });
      if (await isStillDue(this.#stores, scope, { id, now })) this.#left.push(id);
      else this.#report.processed += 1;
    } catch (error) {
      this.#left.push(id);
      this.#report.failed.push({ id, error });
    }
  }
}

function isConnected({ payment_gateway }: DuePayment): boolean {
  return payment_gateway !== null && !listOwnGateways()[payment_gateway];
}

/** Returns the lane of a payment. Payments of one lane are processed one after another. */
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
