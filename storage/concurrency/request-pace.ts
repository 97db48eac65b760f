/**
 * Spaces the requests to a receiver that limits them per second. Each process counts in memory, because a shared count would cost a round
 * trip per request. One job at a time sends the records of a receiver, so processes rarely exceed the limit together. If they do, the
 * receiver refuses the request and names the time to wait.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { createLru } from '../foundation/lru.ts';

/** Receivers that are remembered; a forgotten one begins with a full allowance. */
const NAMES_MAX = 10_000;
/** Seconds of allowance that may be used at once after a quiet time. */
const BURST_SECONDS = 0.2;

export class RequestPace {
  /** Instant, in milliseconds, at which the allowance of a name is full again. */
  readonly #full_at = createLru<number>(NAMES_MAX);

  /**
   * Resolves with null when the next request may be sent, in the order of the calls. If the wait is longer than `max_wait_ms`, it reserves
   * nothing and resolves at once with the seconds to wait: otherwise the backlog of one receiver would occupy the jobs of all.
   */
  async waitForTurn(name: string, requests_per_second: number, max_wait_ms: number): Promise<number | null> {
    const now = performance.now();
    const full_at = Math.max(now, this.#full_at.get(name) ?? 0) + 1_000 / requests_per_second;
    const wait_ms = full_at - now - Math.max(BURST_SECONDS, 1 / requests_per_second) * 1_000;
    if (wait_ms > max_wait_ms) return Math.ceil(wait_ms / 1_000);
    this.#full_at.set(name, full_at);
    if (wait_ms > 0) await wait(wait_ms);
    return null;
  }
}
