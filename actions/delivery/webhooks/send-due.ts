/**
 * Sends due deliveries, many at a time and a few per endpoint, so that a slow receiver delays only itself
 * (docs/rules/webhooks.md, "Deliveries"). Concurrent runs are safe: each delivery is leased by one run.
 */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../../core/foundation/scope.ts';
import { deriveMaxAttempts, type RetryRules } from '../../../core/platform/webhook/schedule.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import {
  type DueDeliveriesQuery,
  type DueDelivery,
  listDeliveryKeys,
  takeDue,
} from '../../../storage/queue/due-deliveries.ts';
import { dispatchBatch } from './dispatch-events.ts';
import type { InFlightDeliveries, SendReport } from './in-flight.ts';
import { type DeliveryResult, sendDelivery, type WebhookServices } from './send-delivery.ts';

export type SendDueOptions = RetryRules & {
  readonly which: DueDeliveriesQuery['which'];
  /** Clock of the deliveries. A run takes half a minute, so each delivery reads the current time. */
  readonly clock: () => Date;
  /** In-flight deliveries, shared with earlier and later runs. */
  readonly in_hand: InFlightDeliveries;
  /** Resolves when the rate limit permits one more delivery. */
  readonly permit?: () => Promise<unknown>;
  /** Whether this run may begin more deliveries; the next run sends the rest. */
  readonly mayGoOn: () => boolean;
  readonly onSent?: (sent: DeliveryResult) => void;
};

const AT_ONCE_EACH = 8;
/** Maximum number of deliveries in flight per environment, for all its endpoints. */
const AT_ONCE_ENVIRONMENT = 16;
/** Maximum number of deliveries in flight per tenant, for all its environments. */
const AT_ONCE_TENANT = 32;

/** Sends due deliveries until nothing is due or in flight, or `mayGoOn` returns false. */
export async function sendDue(services: WebhookServices, sending: SendDueOptions): Promise<SendReport> {
  await new SendRun(services, sending).toItsEnd();
  return sending.in_hand.takeReport();
}

class SendRun {
  readonly #services: WebhookServices;
  readonly #sending: SendDueOptions;
  readonly #lease = randomUUID();
  readonly #inHand: InFlightDeliveries;
  /** Number of begun deliveries per tenant and environment. */
  readonly #served = new Map<string, number>();
  /** Last environment whose events were dispatched, if the round is not complete. */
  #after: Scope | null = null;
  #isOver = false;

  constructor(services: WebhookServices, sending: SendDueOptions) {
    this.#services = services;
    this.#sending = sending;
    this.#inHand = sending.in_hand;
  }

  async toItsEnd(): Promise<void> {
    while (!this.#isOver && !this.#inHand.isEnding && this.#sending.mayGoOn()) {
      // Counted before the queries: a delivery that ends during this pass may make the next delivery of its record due, so another pass
      // follows.
      const wereInHand = this.#inHand.size;
      const room = this.#inHand.room();
      const isMore = room > 0 && this.#sending.which === 'first' && (await this.#dispatch());
      const taken = room > 0 ? await this.#take(room) : [];
      for (const delivery of taken) await this.#begin(delivery);
      if (taken.length > 0 || isMore) continue;
      if (wereInHand === 0) return;
      await this.#inHand.waitForSome();
    }
  }

  /** Dispatches one batch, so that its deliveries are sent before the rest. Returns whether there may be more. */
  async #dispatch(): Promise<boolean> {
    const { postgres, backend, mails = false } = this.#services;
    const dispatching = { has_targets: backend.has_targets, now: this.#sending.clock(), mails, after: this.#after };
    const { dispatched, after } = await dispatchBatch({ postgres }, dispatching);
    this.#inHand.dispatched(dispatched);
    this.#after = after;
    return dispatched > 0 || after !== null;
  }

  async #take(room: number): Promise<DueDelivery[]> {
    const { postgres, backend } = this.#services;
    const { which, permit } = this.#sending;
    // Each delivery waits for a permit, and its lease could expire during that wait. So only one delivery is leased at a time.
    const limit = permit ? 1 : room;
    const { excluded_tenants = [], allowed_event_types = [] } = which === 'again' ? this.#sending : {};
    const filters = { excluded_tenants, allowed_event_types, has_targets: backend.has_targets };
    const limit_each = AT_ONCE_EACH;
    const limits = { limit, limit_each, limit_environment: AT_ONCE_ENVIRONMENT, limit_tenant: AT_ONCE_TENANT };
    const counts = { in_hand: this.#inHand.counts(), served: Object.fromEntries(this.#served) };
    return takeDue(postgres, {
      now: this.#sending.clock(),
      which,
      lease: this.#lease,
      ...limits,
      ...counts,
      ...filters,
    });
  }

  async #begin(delivery: DueDelivery): Promise<void> {
    await this.#sending.permit?.();
    const now = this.#sending.clock();
    const max_attempts = deriveMaxAttempts(delivery, this.#sending);
    for (const key of listDeliveryKeys(delivery)) this.#served.set(key, (this.#served.get(key) ?? 0) + 1);
    this.#inHand.add(delivery, this.#send({ delivery, lease: this.#lease, now, max_attempts }));
  }

  async #send(attempt: Parameters<typeof sendDelivery>[1]): Promise<DeliveryResult> {
    try {
      const sent = await sendDelivery(this.#services, attempt);
      this.#sending.onSent?.(sent);
      return sent;
    } catch (error) {
      // An error of one delivery is thrown at the end; without the database no result can be recorded, so the run ends.
      this.#isOver ||= isUnavailable(error);
      throw error;
    }
  }
}
