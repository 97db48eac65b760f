/**
 * Events are processed in the order of acceptance, so a tenant that sends more than can be processed delays all others. While little work
 * waits, or only one tenant sends, nothing is rejected. The limit applies if several tenants send and half a second of work waits, or an
 * event has waited for most of a second. Then a tenant with more than an equal share of the waiting work gets 429. Accepted events keep
 * their order and stay durable. Work is estimated before it is done, by the worst cost of the tenant's meters: a thousand events that feed
 * a hundred meters are accepted in milliseconds, and a measurement of their processing would come too late.
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import { type Milliseconds, toMs } from '../../../core/foundation/time/instant.ts';
import { computeWorstCost, NO_COST, type WorstCost, worstWork } from '../../../core/metering/meter-cost.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { EventLog } from '../../../storage/log/log.ts';
import { listNewestDefinitions } from '../../../storage/progress/meter-versions.ts';

/**
 * Maximum waiting work: half a second, in the unit of core/metering/expression/work.ts. Another half second of work is still in progress.
 */
const WORK_MAX = 5_000_000;
/** Waiting work below which a tenant is never rejected. */
const LITTLE = WORK_MAX / 10;
/**
 * Maximum waiting time. It is below a second, because a client that retries after a second, as the error says, leaves the pipeline idle
 * only briefly.
 */
const WAITING_MAX_MS = 750;
/** Time without requests after which a sender is inactive. */
const INACTIVE_AFTER_MS = 10_000;
const LAG_CHECK_INTERVAL_MS = 150;
/** Time without progress after which a partition is assumed to wait for a store or a worker, not for the work of other tenants. */
const STILL_MS = 10_000;
const COST_FOR_MS = 5_000;
/** A request within this time after a recorded one is added to its record. */
const COALESCE_WITHIN_MS = 20;

/** Work of one correction. It rebuilds a few rows, and corrections that arrive at the same time share one rebuild. */
const CORRECTION_WORK = WORK_MAX / 20;

/** Load of one request on the log. */
type AdmittedLoad = { readonly events?: number; readonly bytes?: number; readonly corrections?: number };

type RecordedLoad = { readonly at_ms: Milliseconds; events: number; bytes: number; corrections: number };

/** An environment that sends events, with its load that may not be processed yet, oldest first. */
type LoadSender = {
  readonly scope: Scope;
  sent: RecordedLoad[];
  last_ms: Milliseconds;
  worst: WorstCost;
  cost_checked_ms: Milliseconds;
};

export class FairShare {
  readonly #log: Pick<EventLog, 'lag'>;
  readonly #worstCost: (scope: Scope) => Promise<WorstCost>;
  readonly #senders = new Map<string, LoadSender>();
  /** Waiting work of the active senders, by tenant. */
  #waiting = new Map<string, number>();
  #total = 0;
  #waiting_ms = 0;
  #lag_checked_ms = Number.NEGATIVE_INFINITY;
  #isCheckingLag = false;
  /** Last committed offset of each partition, and the time at which it was first seen. */
  readonly #positions = new Map<number, { offset: bigint; at_ms: Milliseconds }>();

  constructor(log: Pick<EventLog, 'lag'>, worstCost: (scope: Scope) => Promise<WorstCost>) {
    this.#log = log;
    this.#worstCost = worstCost;
  }

  /** Throws 429 if the tenant exceeds its share; otherwise records the load. */
  admit(scope: Scope, { events = 0, bytes = 0, corrections = 0 }: AdmittedLoad, now_ms: Milliseconds): void {
    this.#checkLag(now_ms);
    const sender = this.#getSender(scope, now_ms);
    const own = this.#waiting.get(scope.tenant_id) ?? 0;
    const isMuch = this.#total > WORK_MAX || this.#waiting_ms > WAITING_MAX_MS;
    if (isMuch && own > LITTLE && this.#waiting.size > 1 && own > this.#total / this.#waiting.size) {
      throw new FarthingError(
        'too_many_requests',
        'what this tenant has sent is still being processed, and others wait for theirs: send again in a second',
      );
    }
    sender.last_ms = now_ms;
    const last = sender.sent.at(-1);
    if (last && now_ms - last.at_ms < COALESCE_WITHIN_MS) {
      last.events += events;
      last.bytes += bytes;
      last.corrections += corrections;
    } else sender.sent.push({ at_ms: now_ms, events, bytes, corrections });
    const work = computeWork(sender.worst, { events, bytes, corrections });
    this.#waiting.set(scope.tenant_id, own + work);
    this.#total += work;
  }

  #getSender(scope: Scope, now_ms: Milliseconds): LoadSender {
    const key = scopeKey(scope);
    let sender = this.#senders.get(key);
    if (sender === undefined) {
      sender = { scope, sent: [], last_ms: now_ms, worst: NO_COST, cost_checked_ms: Number.NEGATIVE_INFINITY };
      this.#senders.set(key, sender);
    }
    if (now_ms - sender.cost_checked_ms > COST_FOR_MS) {
      sender.cost_checked_ms = now_ms;
      const asking = sender;
      this.#worstCost(scope).then(
        (worst) => {
          asking.worst = worst;
          this.#count(now_ms);
        },
        // If the cost cannot be loaded, the last known cost stays. The request itself fails if it needs Postgres.
        () => {},
      );
    }
    return sender;
  }

  /** Checks the lag in the background; the result applies to later requests. */
  #checkLag(now_ms: Milliseconds): void {
    const since_ms = now_ms - this.#lag_checked_ms;
    // A clock that was set back must not prevent the check.
    if (this.#isCheckingLag || (since_ms >= 0 && since_ms < LAG_CHECK_INTERVAL_MS)) return;
    this.#lag_checked_ms = now_ms;
    this.#isCheckingLag = true;
    this.#log.lag().then(
      (partitions) => {
        for (const { partition, committed_offset } of partitions)
          if (this.#positions.get(partition)?.offset !== committed_offset)
            this.#positions.set(partition, { offset: committed_offset, at_ms: now_ms });
        const moving = partitions.filter(({ partition }) => now_ms - this.#positions.get(partition)!.at_ms < STILL_MS);
        const oldest_us = Math.min(...moving.map(({ oldest_unprocessed_at_us: at }) => at ?? Infinity));
        this.#applyLag(oldest_us === Infinity ? now_ms : toMs(oldest_us), now_ms);
      },
      // If the lag is unknown, nothing is rejected here. If the log is unavailable, the append fails by itself.
      () => this.#applyLag(now_ms, now_ms),
    );
  }

  /** Removes the processed load: all that was sent before `oldest_ms`, the receipt of the oldest unprocessed event. */
  #applyLag(oldest_ms: Milliseconds, now_ms: Milliseconds): void {
    this.#isCheckingLag = false;
    this.#waiting_ms = Math.max(0, now_ms - oldest_ms);
    for (const [key, sender] of this.#senders) {
      sender.sent = sender.sent.filter(({ at_ms }) => at_ms >= oldest_ms);
      if (sender.sent.length === 0 && now_ms - sender.last_ms > INACTIVE_AFTER_MS) this.#senders.delete(key);
    }
    this.#count(now_ms);
  }

  #count(now_ms: Milliseconds): void {
    this.#waiting = new Map();
    this.#total = 0;
    for (const { scope, sent, last_ms, worst } of this.#senders.values()) {
      if (now_ms - last_ms > INACTIVE_AFTER_MS) continue;
      const work = sent.reduce((sum, some) => sum + computeWork(worst, some), 0);
      this.#waiting.set(scope.tenant_id, (this.#waiting.get(scope.tenant_id) ?? 0) + work);
      this.#total += work;
    }
  }
}

function computeWork(worst: WorstCost, { corrections, ...sent }: Required<AdmittedLoad>): number {
  return worstWork(worst, sent) + corrections * CORRECTION_WORK;
}

const shares = new WeakMap<EventLog, FairShare>();

export function getFairShare({ log, postgres }: Pick<Stores, 'log' | 'postgres'>): FairShare {
  let share = shares.get(log);
  if (share === undefined) {
    const worstCost = async (scope: Scope) => computeWorstCost(await listNewestDefinitions(postgres, scope));
    shares.set(log, (share = new FairShare(log, worstCost)));
  }
  return share;
}
