/**
 * Sends the deliveries that are due, many at a time and a few per endpoint, so that one that is slow keeps nobody waiting but
 * itself (docs/rules/webhooks.md, "Deliveries"). Safe to run twice at once: a delivery is leased by one.
 */
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../core/scope.ts';
import { deriveMaxAttempts, type RetryRules } from '../../core/webhook/schedule.ts';
import { isUnavailable } from '../../storage/failure.ts';
import {
  type DueDeliveriesQuery,
  type DueDelivery,
  listDeliveryKeys,
  takeDue,
} from '../../storage/webhooks/due-deliveries.ts';
import { dispatchBatch } from './dispatch-events.ts';
import type { InFlightDeliveries, SendReport } from './in-flight.ts';
import { type DeliveryResult, sendDelivery, type WebhookServices } from './send-delivery.ts';

export type SendDueOptions = RetryRules & {
  readonly which: DueDeliveriesQuery['which'];
  /** A run takes half a minute, and what it begins at its end is not of its beginning. */
  readonly clock: () => Date;
  /** What runs before this one have left on its way, and what this one leaves to the next. */
  readonly in_hand: InFlightDeliveries;
  /** Resolves when one more may be sent. */
  readonly permit?: () => Promise<unknown>;
  /** False when it is time to leave the rest to the next run. */
  readonly mayGoOn: () => boolean;
  readonly onSent?: (sent: DeliveryResult) => void;
};

const AT_ONCE_EACH = 8;
/** Of one environment, however many endpoints it has. */
const AT_ONCE_ENVIRONMENT = 16;
/** Of one tenant, however many environments it has. */
const AT_ONCE_TENANT = 32;

/** Ends when nothing is due nor on its way; or at once, when it may not go on. */
export async function sendDue(services: WebhookServices, sending: SendDueOptions): Promise<SendReport> {
  await new SendRun(services, sending).toItsEnd();
  return sending.in_hand.takeReport();
}

class SendRun {
  readonly #services: WebhookServices;
  readonly #sending: SendDueOptions;
  readonly #lease = randomUUID();
  readonly #inHand: InFlightDeliveries;
  /** How many were begun of each tenant and environment. */
  readonly #served = new Map<string, number>();
  /** The environment whose events were dispatched last, in a line that was not gone through to its end. */
  #after: Scope | null = null;
  #isOver = false;

  constructor(services: WebhookServices, sending: SendDueOptions) {
    this.#services = services;
    this.#sending = sending;
    this.#inHand = sending.in_hand;
  }

  async toItsEnd(): Promise<void> {
    while (!this.#isOver && !this.#inHand.isEnding && this.#sending.mayGoOn()) {
      // What is delivered while it is looked may have been what the next of its record waits for: then it is looked once more.
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

  /** A part of what waits, so that what is made of it is sent before the rest; whether there may be more. */
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
    // With a permit each of them waits for its turn, and a lease does not last for ever.
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
      // What is wrong with one delivery is said at the end; without the database none can be written down.
      this.#isOver ||= isUnavailable(error);
      throw error;
    }
  }
}
