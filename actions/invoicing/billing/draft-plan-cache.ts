/**
 * Caches drafts in the process that planned them, with the inputs of their plans. If no input has changed when a draft becomes final, a
 * second plan would be equal and is skipped (docs/decisions/0007-cached-answers.md). A change snapshot, read with the draft and its
 * subscription locked, shows changed records; the usage cache shows changed usage. A plan that is not provably valid is recomputed.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import { type ChangeSnapshot, excludeOwnWrites, readChanges } from '../../../storage/cache/change-feed.ts';
import { isCorrectionsId, isRecordId } from '../../../storage/cache/record-ids.ts';
import { internId } from '../../../storage/cache/shared-value.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { findNameInEvents } from '../../../storage/models/catalog/customer.ts';
import {
  type DependencyRecorder,
  runWithRecorder,
} from '../../../storage/postgres/interceptors/dependency-recorder.ts';
import type { LiveUsageSubject, LiveUsageWatcher, UsageResult } from '../../../storage/usage/live-usage.ts';
import type { UsageCache } from '../../../storage/usage/usage-cache.ts';
import type { MeterUsageQuery } from '../../../storage/usage/usage-query.ts';
import type { IsPlanCurrent, PlannedDraft } from './clock-advance-plan-cache.ts';

/** Maximum number of drafts cached per process; the oldest are evicted and planned again. */
const CACHED_DRAFTS_MAX = 50_000;
/** Prefixes of ids that are no input of a plan: customers and environments (docs/decisions/0007-cached-answers.md). */
const NO_INPUT = /^(cust|env)_/;

type WatchedUsage = {
  readonly meter_id: string;
  readonly customer: string;
  readonly subject: LiveUsageSubject;
  /** Events at or after this instant do not affect the plan. */
  end_us: Microseconds;
};

/** Inputs of one draft's plan, recorded while it is planned. */
class PlanDependencies implements DependencyRecorder, LiveUsageWatcher {
  readonly #memory: UsageCache;
  records: Iterable<string>;
  readonly watched: WatchedUsage[] = [];
  /** Whether the plan may be outdated: usage arrived that the draft lacks, or usage is no longer tracked. */
  is_other = false;

  constructor(memory: UsageCache, subscription_id: string) {
    this.#memory = memory;
    this.records = new Set([subscription_id]);
  }

  /**
   * Records the id of a read row. Wallets, payments and settings are ignored: they change often, and affect a draft
   * only when it becomes final.
   */
  row(row: Readonly<Record<string, unknown>>): void {
    for (const name in row) {
      const value = row[name];
      if (typeof value !== 'string') continue;
      if (isCorrectionsId(name, value) || (isRecordId(name, value) && !NO_INPUT.test(value))) this.#add(value);
    }
  }

  /**
   * Adds an id while the draft is being planned. Once the draft is cached, `records` is an array, and rows read later do not belong to its
   * plan.
   */
  #add(id: string): void {
    if (this.records instanceof Set) this.records.add(internId(id));
  }

  recordUsageQuery(
    _tenant_id: string,
    _environment_id: string,
    { meter, external_customer_ids, end_us }: MeterUsageQuery,
  ): void {
    this.#add(meter.id);
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

  /** Marks the plan as outdated if the usage cache cannot report new rows of the meter. */
  read({ adds_rows }: UsageResult): void {
    if (!adds_rows) this.is_other = true;
  }

  /**
   * Marks the plan as outdated if the event precedes the end of the usage that the plan has read. Usage of the next month does not affect
   * the draft of this month.
   */
  onRow(subject: LiveUsageSubject, first_us: Microseconds): void {
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
  /** Number of the last change snapshot before the plan. */
  readonly snapshot: number;
  readonly version: number;
  readonly subscription: PlannedDraft['subscription'];
};

export type DraftPlanning = {
  /** Begins a transaction. Called before anything is read. The transaction's own writes do not invalidate its drafts. */
  begin(transaction: Transaction): Promise<void>;
  /** Records the inputs read for the draft of this subscription. */
  of<Made>(subscription_id: string, plan: () => Made): Made;
  /** Caches the plans of the drafts after the commit. After a rollback the list is empty. */
  end(drafted: readonly PlannedDraft[]): void;
};

const caches = new WeakMap<UsageCache, DraftPlanCache>();

/** Returns the cache; undefined in a process that does not receive new usage. */
export function findDraftPlanCache({ usage_cache }: Stores): DraftPlanCache | undefined {
  if (usage_cache === undefined) return undefined;
  let own = caches.get(usage_cache);
  if (own === undefined) caches.set(usage_cache, (own = new DraftPlanCache(usage_cache)));
  return own;
}

class DraftPlanCache {
  readonly #memory: UsageCache;
  /** Cached drafts by id, the most recently planned last. */
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
        // After a deadlock the transaction runs again, so inputs recorded by the first run are dropped.
        noted.get(subscription_id)?.end();
        const made_of = new PlanDependencies(this.#memory, subscription_id);
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

  /**
   * Caches a draft with its inputs, and returns true. Returns false if the invoice is not a draft, its plan is outdated already, or the
   * plan has not settled all earlier usage charges.
   */
  #keep({ invoice, subscription, is_settled }: PlannedDraft, snapshot: number, made_of: PlanDependencies): boolean {
    if (!is_settled || invoice.invoice_status !== 'DRAFT' || made_of.is_other) return false;
    made_of.records = [...made_of.records];
    const { id, version } = subscription;
    this.#drafts.set(invoice.id, {
      made_of,
      snapshot,
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

  /** Keeps the usage cache updated while drafts are cached. */
  async stay(stores: Stores): Promise<void> {
    if (this.#drafts.size > 0) await this.#readChanges(stores);
  }

  async #readChanges({ postgres }: Stores): Promise<ChangeSnapshot> {
    const snapshot = await readChanges(postgres);
    this.#memory.follow(snapshot.progress);
    return snapshot;
  }

  /**
   * Prepares a check of drafts that become final in this transaction; each is checked once. The transaction has locked each draft and its
   * subscription before the call.
   */
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

/** Whether the customer still has its external id. Under another external id, other events count. */
async function isSameCustomer(
  transaction: Transaction,
  subscription: Scope & { readonly customer_id: string },
  watched: readonly WatchedUsage[],
): Promise<boolean> {
  if (watched.length === 0) return true;
  const name = await findNameInEvents(subscription, subscription.customer_id, transaction);
  return watched.every(({ customer }) => customer === name);
}
