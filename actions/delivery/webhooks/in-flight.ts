/**
 * Deliveries that are in flight. They outlive the run that began them: the next run counts and reports them. So no run waits for slow
 * receivers while other deliveries are due (docs/decisions/0021-fairness.md).
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type DeliveryCounts, type DueDelivery, listDeliveryKeys } from '../../../storage/queue/due-deliveries.ts';
import type { DeliveryResult } from './send-delivery.ts';

export type SendReport = { dispatched: number; delivered: number; failed: number; given_up: number };

/** Maximum number of deliveries in flight: each occupies a socket and its request body. */
const AT_ONCE = 512;
/** Maximum number of new deliveries at once: each queries the database before it is sent and soon afterwards. */
const BEGUN_AT_ONCE = 64;
/** Time after which a delivery no longer counts as new: it then only waits for its receiver. */
const BEGUN_FOR_MS = 1_000;
/** Interval in milliseconds at which new deliveries are searched while some are in flight. */
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

  /** Whether no further delivery may begin. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  add(delivery: DueDelivery, sending: Promise<DeliveryResult>): void {
    const ending = sending
      .then(({ how }) => {
        this.#report[how] += 1;
      })
      .catch((error: unknown) => {
        // A result that could not be written is not lost: the lease expires, and the delivery is sent again.
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

  /** Number of deliveries that may begin now. */
  room(): number {
    return Math.min(AT_ONCE - this.#begun.size, BEGUN_AT_ONCE - this.#lately.size);
  }

  counts(): DeliveryCounts {
    const counts: Record<string, number> = {};
    for (const delivery of this.#begun.values())
      for (const key of listDeliveryKeys(delivery)) counts[key] = (counts[key] ?? 0) + 1;
    return counts;
  }

  /** Resolves when one delivery has ended, or after `POLL_MS`. */
  async waitForSome(): Promise<void> {
    if (this.#begun.size > 0) await Promise.race([...this.#begun.keys(), wait(POLL_MS)]);
  }

  dispatched(count: number): void {
    this.#report.dispatched += count;
  }

  /**
   * Returns the results since the last call. If a delivery threw an error since then, throws that error instead, and
   * the next call returns the results.
   */
  takeReport(): SendReport {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    const report = this.#report;
    this.#report = emptyReport();
    return report;
  }

  /** Prepares the shutdown: begins no more deliveries and waits for those in flight. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#begun.keys());
  }
}

function emptyReport(): SendReport {
  return { dispatched: 0, delivered: 0, failed: 0, given_up: 0 };
}
