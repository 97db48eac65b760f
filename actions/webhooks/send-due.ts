/**
 * Sends the deliveries that are due, many at a time and a few per endpoint, so that one that is slow keeps nobody waiting but
 * itself (docs/rules/webhooks.md, "Deliveries"). Safe to run twice at once: a delivery is leased by one.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { type DueDelivery, takeDue, type Wanted } from '../../storage/webhooks/due-deliveries.ts';
import { dispatchEvents } from './dispatch-events.ts';
import { type Sent, sendDelivery, type WebhookServices } from './send-delivery.ts';

export type Sending = Pick<Wanted, 'which' | 'excluded_tenants' | 'allowed_event_types'> & {
  readonly now: Date;
  readonly max_attempts: number;
  /** Resolves when one more may be sent. */
  readonly permit?: () => Promise<unknown>;
  /** False when it is time to leave the rest to the next run. */
  readonly mayGoOn: () => boolean;
  readonly onSent?: (sent: Sent) => void;
};

export type SendReport = { dispatched: number; delivered: number; failed: number; given_up: number };

const AT_ONCE = 64;
const AT_ONCE_EACH = 8;
/** While some are on their way it is looked for others so often. */
const LOOK_AGAIN_MS = 250;

export async function sendDue(services: WebhookServices, sending: Sending): Promise<SendReport> {
  return new Run(services, sending).toItsEnd();
}

class Run {
  readonly #services: WebhookServices;
  readonly #sending: Sending;
  readonly #lease = randomUUID();
  readonly #inHand = new Map<Promise<void>, string>();
  readonly #report: SendReport = { dispatched: 0, delivered: 0, failed: 0, given_up: 0 };
  #failure: unknown;

  constructor(services: WebhookServices, sending: Sending) {
    this.#services = services;
    this.#sending = sending;
  }

  async toItsEnd(): Promise<SendReport> {
    for (;;) {
      const taken = await this.#takeMore();
      for (const delivery of taken) await this.#begin(delivery);
      if (taken.length > 0) continue;
      if (this.#inHand.size === 0) break;
      await Promise.race([...this.#inHand.keys(), wait(LOOK_AGAIN_MS)]);
    }
    // What could not be written down is not lost: its lease ends, and it is sent again.
    if (this.#failure !== undefined) throw this.#failure;
    return this.#report;
  }

  async #takeMore(): Promise<DueDelivery[]> {
    const room = AT_ONCE - this.#inHand.size;
    const { now, which, mayGoOn } = this.#sending;
    if (room <= 0 || this.#failure !== undefined || !mayGoOn()) return [];
    const { postgres, backend } = this.#services;
    this.#report.dispatched += await dispatchEvents({ postgres }, { has_targets: backend.has_targets, now });
    // With a permit each of them waits for its turn, and a lease does not last for ever.
    const limit_each = this.#sending.permit ? 1 : AT_ONCE_EACH;
    const { excluded_tenants = [], allowed_event_types = [] } = this.#sending;
    const filters = { excluded_tenants, allowed_event_types };
    const limits = { limit: this.#sending.permit ? 1 : room, limit_each, busy: this.#busy() };
    return takeDue(postgres, { now, which, lease: this.#lease, ...limits, ...filters });
  }

  async #begin(delivery: DueDelivery): Promise<void> {
    await this.#sending.permit?.();
    const { now, max_attempts } = this.#sending;
    const sending = sendDelivery(this.#services, { delivery, lease: this.#lease, now, max_attempts })
      .then((sent) => {
        this.#report[sent.how] += 1;
        this.#sending.onSent?.(sent);
      })
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#inHand.delete(sending));
    this.#inHand.set(sending, delivery.endpoint_id ?? '');
  }

  #busy(): string[] {
    const counts = new Map<string, number>();
    for (const endpoint_id of this.#inHand.values()) counts.set(endpoint_id, (counts.get(endpoint_id) ?? 0) + 1);
    return [...counts].flatMap(([endpoint_id, count]) => (count >= AT_ONCE_EACH && endpoint_id ? [endpoint_id] : []));
  }
}
