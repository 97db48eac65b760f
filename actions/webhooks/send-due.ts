/**
 * Sends the deliveries that are due, many at a time and a few per endpoint, so that one that is slow keeps nobody waiting but
 * itself (docs/rules/webhooks.md, "Deliveries"). Safe to run twice at once: a delivery is leased by one.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { groupBy } from '../../core/group-by.ts';
import { attemptsOf, type RetryRules } from '../../core/webhook/schedule.ts';
import { isAway } from '../../storage/failure.ts';
import { type DueDelivery, environmentKey, takeDue, type Wanted } from '../../storage/webhooks/due-deliveries.ts';
import { dispatchEvents } from './dispatch-events.ts';
import { type Sent, sendDelivery, type WebhookServices } from './send-delivery.ts';

export type Sending = RetryRules & {
  readonly which: Wanted['which'];
  readonly now: Date;
  /** Resolves when one more may be sent. */
  readonly permit?: () => Promise<unknown>;
  /** False when it is time to leave the rest to the next run. */
  readonly mayGoOn: () => boolean;
  readonly onSent?: (sent: Sent) => void;
};

export type SendReport = { dispatched: number; delivered: number; failed: number; given_up: number };

const AT_ONCE = 64;
const AT_ONCE_EACH = 8;
/** Of one environment, however many endpoints it has. */
const AT_ONCE_ENVIRONMENT = 16;
/** While some are on their way it is looked for others so often. */
const LOOK_AGAIN_MS = 250;

export async function sendDue(services: WebhookServices, sending: Sending): Promise<SendReport> {
  return new Run(services, sending).toItsEnd();
}

class Run {
  readonly #services: WebhookServices;
  readonly #sending: Sending;
  readonly #lease = randomUUID();
  readonly #inHand = new Map<Promise<void>, DueDelivery>();
  readonly #report: SendReport = { dispatched: 0, delivered: 0, failed: 0, given_up: 0 };
  /** How many of each environment were begun. */
  readonly #served = new Map<string, number>();
  #failure: unknown;
  #isOver = false;

  constructor(services: WebhookServices, sending: Sending) {
    this.#services = services;
    this.#sending = sending;
  }

  async toItsEnd(): Promise<SendReport> {
    for (;;) {
      // What is delivered while it is looked may have been what the next of its record waits for: then it is looked once more.
      const wereInHand = this.#inHand.size;
      const taken = await this.#takeMore();
      for (const delivery of taken) await this.#begin(delivery);
      if (taken.length > 0) continue;
      if (wereInHand === 0) break;
      if (this.#inHand.size > 0) await Promise.race([...this.#inHand.keys(), wait(LOOK_AGAIN_MS)]);
    }
    // What could not be written down is not lost: its lease ends, and it is sent again.
    if (this.#failure !== undefined) throw this.#failure;
    return this.#report;
  }

  async #takeMore(): Promise<DueDelivery[]> {
    const room = AT_ONCE - this.#inHand.size;
    const { now, which, mayGoOn } = this.#sending;
    if (room <= 0 || this.#isOver || !mayGoOn()) return [];
    const { postgres, backend, mails = false } = this.#services;
    const dispatching = { has_targets: backend.has_targets, now, mails };
    this.#report.dispatched += await dispatchEvents({ postgres }, dispatching);
    // With a permit each of them waits for its turn, and a lease does not last for ever.
    const limit_each = this.#sending.permit ? 1 : AT_ONCE_EACH;
    const { excluded_tenants = [], allowed_event_types = [] } = which === 'again' ? this.#sending : {};
    const filters = { excluded_tenants, allowed_event_types, has_targets: backend.has_targets };
    const limits = { limit: this.#sending.permit ? 1 : room, limit_each, limit_environment: AT_ONCE_ENVIRONMENT };
    const counts = { busy: this.#busy(), in_hand: this.#ofEnvironments(), served: Object.fromEntries(this.#served) };
    return takeDue(postgres, { now, which, lease: this.#lease, ...limits, ...counts, ...filters });
  }

  async #begin(delivery: DueDelivery): Promise<void> {
    await this.#sending.permit?.();
    const { now } = this.#sending;
    const max_attempts = attemptsOf(delivery, this.#sending);
    const key = environmentKey(delivery);
    this.#served.set(key, (this.#served.get(key) ?? 0) + 1);
    const sending = sendDelivery(this.#services, { delivery, lease: this.#lease, now, max_attempts })
      .then((sent) => {
        this.#report[sent.how] += 1;
        this.#sending.onSent?.(sent);
      })
      .catch((error: unknown) => {
        this.#failure ??= error;
        // What is wrong with one delivery is said at the end; without the database none can be written down.
        this.#isOver ||= isAway(error);
      })
      .finally(() => this.#inHand.delete(sending));
    this.#inHand.set(sending, delivery);
  }

  #busy(): string[] {
    const groups = groupBy(this.#inHand.values(), ({ endpoint_id }) => endpoint_id);
    return [...groups].flatMap(([id, { length }]) => (length >= AT_ONCE_EACH && id !== null ? [id] : []));
  }

  #ofEnvironments(): Record<string, number> {
    const groups = groupBy(this.#inHand.values(), environmentKey);
    return Object.fromEntries([...groups].map(([key, { length }]) => [key, length]));
  }
}
