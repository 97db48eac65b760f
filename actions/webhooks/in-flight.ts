/**
 * What is on its way to its receivers. It outlasts the run that began it: the next one counts it among its own, and reports how it ended,
 * so that no run waits for receivers while others have something to be sent (docs/decisions/0021-fairness.md).
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type DeliveryCounts, type DueDelivery, listDeliveryKeys } from '../../storage/webhooks/due-deliveries.ts';
import type { DeliveryResult } from './send-delivery.ts';

export type SendReport = { dispatched: number; delivered: number; failed: number; given_up: number };

/** Each of them is a socket, and the body that was sent. */
const AT_ONCE = 512;
/** Each of them asks the database, before it is sent and soon after that. */
const BEGUN_AT_ONCE = 64;
/** What is on its way for longer waits for its receiver alone. */
const BEGUN_FOR_MS = 1_000;
/** While some are on their way it is looked for others so often. */
const POLL_MS = 250;

export class InFlightDeliveries {
  readonly #begun = new Map<Promise<void>, DueDelivery>();
  readonly #lately = new Set<Promise<void>>();
  #report = emptyReport();
  #failure: unknown;
  #isEnding = false;

  get size(): number {
    return this.#begun.size;
  }

  /** Nothing more is to be begun. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  add(delivery: DueDelivery, sending: Promise<DeliveryResult>): void {
    const ending = sending
      .then(({ how }) => {
        this.#report[how] += 1;
      })
      .catch((error: unknown) => {
        // What could not be written down is not lost: its lease ends, and it is sent again.
        this.#failure ??= error;
      })
      .finally(() => {
        clearTimeout(timer);
        this.#begun.delete(ending);
        this.#lately.delete(ending);
      });
    const timer = setTimeout(() => this.#lately.delete(ending), BEGUN_FOR_MS);
    this.#begun.set(ending, delivery);
    this.#lately.add(ending);
  }

  /** How many more may be begun now. */
  room(): number {
    return Math.min(AT_ONCE - this.#begun.size, BEGUN_AT_ONCE - this.#lately.size);
  }

  counts(): DeliveryCounts {
    const counts: Record<string, number> = {};
    for (const delivery of this.#begun.values())
      for (const key of listDeliveryKeys(delivery)) counts[key] = (counts[key] ?? 0) + 1;
    return counts;
  }

  /** Until one of them has ended, or it is time to look for others. */
  async waitForSome(): Promise<void> {
    if (this.#begun.size > 0) await Promise.race([...this.#begun.keys(), wait(POLL_MS)]);
  }

  dispatched(count: number): void {
    this.#report.dispatched += count;
  }

  /** What has ended since this was last asked; throws what has failed since, and then the rest is told the next time. */
  takeReport(): SendReport {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    const report = this.#report;
    this.#report = emptyReport();
    return report;
  }

  /** Of a process that ends: nothing more is begun, and what is on its way is waited for. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#begun.keys());
  }
}

function emptyReport(): SendReport {
  return { dispatched: 0, delivered: 0, failed: 0, given_up: 0 };
}
