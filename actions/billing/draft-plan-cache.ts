/**
 * Drafts that rest in the process that has planned them, with what they were planned from: where nothing of it has changed when they
 * become final, a second plan would say the same, and is not made (docs/decisions/0009-draft-plan-cache.md). Records are known to have changed by a
 * look that is taken behind the locks on the draft and its subscription, usage by the memory of usage. What cannot be told is planned anew.
 */
import type { Scope } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { type ChangeSnapshot, excludeOwnWrites, readChanges } from '../../storage/cache/change-feed.ts';
import { type DependencyRecorder, runWithRecorder } from '../../storage/cache/dependency-recorder.ts';
import { internId } from '../../storage/cache/shared-value.ts';
import { findNameInEvents } from '../../storage/models/customer.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import type { LiveUsageSubject, LiveUsageWatcher, UsageRead } from '../../storage/usage/live-usage.ts';
import type { UsageCache } from '../../storage/usage/usage-cache.ts';
import type { MeterUsageQuery } from '../../storage/usage/usage-query.ts';
import type { IsPlanCurrent, PlannedDraft } from './clock-advance-plan-cache.ts';

/** So many rest; those that have rested longest are planned again. */
const CACHED_DRAFTS_MAX = 50_000;

type WatchedUsage = {
  readonly meter_id: string;
  readonly customer: string;
  readonly subject: LiveUsageSubject;
  /** What happens then or later was not asked for. */
  end_us: Microseconds;
};

/** What one draft is planned from, noted while it is. */
class PlanDependencies implements DependencyRecorder, LiveUsageWatcher {
  readonly #memory: UsageCache;
  records: Iterable<string> = new Set<string>();
  readonly watched: WatchedUsage[] = [];
  /** Other usage has come, or nothing is known of it any more. */
  is_other = false;

  constructor(memory: UsageCache) {
    this.#memory = memory;
  }

  dependsOn(ids: Iterable<string>): void {
    for (const id of ids) (this.records as Set<string>).add(internId(id));
  }

  recordUsageQuery(
    _tenant_id: string,
    _environment_id: string,
    { meter, external_customer_ids, end_us }: MeterUsageQuery,
  ): void {
    if (external_customer_ids === null) this.is_other = true;
    for (const customer of external_customer_ids ?? []) {
      const known = this.watched.find((one) => one.meter_id === meter.id && one.customer === customer);
      if (known) known.end_us = Math.max(known.end_us, end_us);
      else {
        const subject = this.#memory.running.watch(this, meter.id, customer);
        this.watched.push({ meter_id: meter.id, customer, subject, end_us });
      }
    }
  }

  row(): void {}

  /** Of a meter without rows nobody tells what comes. */
  read({ has_rows }: UsageRead): void {
    if (!has_rows) this.is_other = true;
  }

  /** Who is billed for one month goes on using in the next. */
  came(subject: LiveUsageSubject, first_us: Microseconds): void {
    if (this.watched.some((one) => one.subject === subject && first_us < one.end_us)) this.is_other = true;
  }

  invalidate(): void {
    this.is_other = true;
  }

  end(): void {
    for (const one of this.watched) this.#memory.running.leave(this, one);
  }
}

type CachedDraftPlan = {
  readonly made_of: PlanDependencies;
  /** The last look before it was planned. */
  readonly snapshot: number;
  readonly version: number;
  readonly subscription: PlannedDraft['subscription'];
};

/** Drafts that are planned in one transaction. */
export type DraftPlanning = {
  /** Before anything is read. What the transaction itself writes changes nothing for its drafts. */
  begin(transaction: Transaction): Promise<void>;
  /** Notes what is read for the draft of this subscription. */
  of<Made>(subscription_id: string, plan: () => Made): Made;
  /** When they are committed, or not. */
  end(drafted: readonly PlannedDraft[]): void;
};

const caches = new WeakMap<UsageCache, DraftPlanCache>();

/** Of a process that sees what usage arrives. */
export function findDraftPlanCache({ usage_memory }: Stores): DraftPlanCache | undefined {
  if (usage_memory === undefined) return undefined;
  let own = caches.get(usage_memory);
  if (own === undefined) caches.set(usage_memory, (own = new DraftPlanCache(usage_memory)));
  return own;
}

class DraftPlanCache {
  readonly #memory: UsageCache;
  /** By the id of the draft; those that were planned last come last. */
  readonly #drafts = new Map<string, CachedDraftPlan>();

  constructor(memory: UsageCache) {
    this.#memory = memory;
  }

  planning(stores: Stores): DraftPlanning {
    let snapshot = Number.NEGATIVE_INFINITY;
    const noted = new Map<string, PlanDependencies>();
    return {
      begin: async (transaction) => {
        await excludeOwnWrites(stores.postgres, transaction);
        snapshot = (await this.#readChanges(stores)).number;
      },
      of: (subscription_id, plan) => {
        const made_of = new PlanDependencies(this.#memory);
        noted.set(subscription_id, made_of);
        return runWithRecorder(made_of, plan);
      },
      end: (drafted) => {
        for (const one of drafted)
          if (this.#keep(one, snapshot, noted.get(one.subscription.id)!)) noted.delete(one.subscription.id);
        for (const made_of of noted.values()) made_of.end();
      },
    };
  }

  /** Whether it rests with what it was planned from: one beside which nothing else is open or to be corrected. */
  #keep({ invoice, subscription, is_settled }: PlannedDraft, snapshot: number, made_of: PlanDependencies): boolean {
    if (!is_settled || invoice.invoice_status !== 'DRAFT' || made_of.is_other) return false;
    made_of.records = [...made_of.records];
    const { id, version } = subscription;
    this.#drafts.set(invoice.id, {
      made_of,
      snapshot: snapshot,
      version: invoice.version,
      subscription: { id, version },
    });
    if (this.#drafts.size > CACHED_DRAFTS_MAX) this.#take(this.#drafts.keys().next().value!);
    return true;
  }

  #take(invoice_id: string): CachedDraftPlan | undefined {
    const cached = this.#drafts.get(invoice_id);
    this.#drafts.delete(invoice_id);
    cached?.made_of.end();
    return cached;
  }

  /** The memory of usage goes on listening while something rests. */
  async stay(stores: Stores): Promise<void> {
    if (this.#drafts.size > 0) await this.#readChanges(stores);
  }

  async #readChanges({ postgres }: Stores): Promise<ChangeSnapshot> {
    const snapshot = await readChanges(postgres);
    this.#memory.follow(snapshot.progress);
    return snapshot;
  }

  /** For drafts that become final in this transaction, which holds each and its subscription when it asks. Each is asked of once. */
  within(stores: Stores, transaction: Transaction): IsPlanCurrent {
    return async ({ invoice, subscription, line_items }) => {
      const cached = this.#drafts.get(invoice.id);
      if (cached === undefined || subscription === null) return false;
      const snapshot = await this.#readChanges(stores);
      this.#take(invoice.id);
      if (invoice.version !== cached.version || subscription.version !== cached.subscription.version) return false;
      if (line_items.some(({ subscription_id }) => subscription_id !== subscription.id)) return false;
      if (cached.made_of.is_other || cached.snapshot < snapshot.known_since) return false;
      for (const id of cached.made_of.records)
        if ((snapshot.changed_by_others.get(id) ?? 0) > cached.snapshot) return false;
      return isSameCustomer(transaction, subscription, cached.made_of.watched);
    };
  }
}

/** Whose name is another one counts what others have sent. */
async function isSameCustomer(
  transaction: Transaction,
  subscription: Scope & { readonly customer_id: string },
  watched: readonly WatchedUsage[],
): Promise<boolean> {
  if (watched.length === 0) return true;
  const name = await findNameInEvents(subscription, subscription.customer_id, transaction);
  return watched.every(({ customer }) => customer === name);
}
