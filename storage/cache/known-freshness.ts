/**
 * Caches the freshness of the log for callers with thousands of requests a second: a recent value serves all of them while it is refreshed
 * in the background. It may be older than the true value, never later.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../core/foundation/time/instant.ts';
import type { Stores } from '../foundation/stores.ts';
import { loadClock } from '../models/schedule/environment-clock.ts';
import { loadFreshness } from '../usage/usage.ts';

type KnownInstant = { readonly as_of: string; readonly as_of_ms: Milliseconds; readonly read_ms: Milliseconds };

/** By the machine's clock: an older value is refreshed. */
const FRESH_MS = 50;
/** If the value is older, callers wait for the refresh. */
const KNOWN_MS = 500;

export class KnownFreshness {
  #known: KnownInstant | null = null;
  #reading: Promise<KnownInstant> | null = null;

  async load(stores: Stores, scope_now: Scope & { readonly now: Date }): Promise<string> {
    const now_ms = scope_now.now.getTime();
    // An environment clock determines the freshness itself.
    if ((await loadClock(stores.postgres, scope_now)) !== null) return loadFreshness(stores, scope_now, now_ms);
    return this.known(stores, scope_now) ?? (await this.#reading!).as_of;
  }

  /** A recent value, for an environment on the machine's clock; undefined while it is being read. */
  known(stores: Stores, { now, ...scope_now }: Scope & { readonly now: Date }): string | undefined {
    const now_ms = now.getTime();
    const age_ms = this.#known === null ? Number.POSITIVE_INFINITY : performance.now() - this.#known.read_ms;
    const isKnown = age_ms <= KNOWN_MS && this.#known!.as_of_ms <= now_ms;
    if (age_ms <= FRESH_MS && isKnown) return this.#known!.as_of;
    this.#reading ??= this.#read(stores, scope_now, now_ms);
    // Callers that wait for the refresh receive its failure.
    this.#reading.catch(() => undefined);
    return isKnown ? this.#known!.as_of : undefined;
  }

  async #read(stores: Stores, scope: Scope, now_ms: Milliseconds): Promise<KnownInstant> {
    try {
      const read_ms = performance.now();
      const as_of = await loadFreshness(stores, scope, now_ms);
      this.#known = { as_of, as_of_ms: toInstant(as_of), read_ms };
      return this.#known;
    } finally {
      this.#reading = null;
    }
  }
}
