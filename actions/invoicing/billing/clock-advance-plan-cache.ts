/**
 * Records which drafts a clock advance need not plan again at finalization, because no input of their plan can have changed
 * (docs/decisions/0007-cached-answers.md). Any job of the advance that may change such an input clears this cache. A plan that is not
 * provably valid is recomputed.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadSharedProgress } from '../../../storage/progress/slices.ts';

type Versioned = Pick<Invoice & SubscriptionModel, 'id' | 'version'>;

/** A draft, and its subscription after the draft was made. `is_settled`: the plan has checked all earlier usage charges. */
export type PlannedDraft = {
  readonly invoice: Versioned & Pick<Invoice, 'invoice_status'>;
  readonly subscription: Versioned;
  readonly is_settled: boolean;
};

/** Log position up to which events are counted; while it is unchanged, all usage is unchanged. */
type CountedProgress = string;
type CheckedCharges = { readonly subscription_version: number; readonly counted: CountedProgress };
type ClockAdvancePlan = CheckedCharges & { readonly invoice: Versioned };

/** Whether a new plan of the locked draft and subscription would equal the last one. */
export type IsPlanCurrent = (locked: {
  readonly invoice: Versioned;
  readonly subscription: (Versioned & Scope & Pick<SubscriptionModel, 'customer_id'>) | null;
  readonly line_items: readonly Pick<InvoiceLineItem, 'subscription_id'>[];
}) => boolean | Promise<boolean>;

export class ClockAdvancePlanCache {
  /**
   * Resolves to true if only this advance has written in the environment since it was requested, and no other process
   * can until the transaction ends.
   */
  readonly #isAlone: (transaction: Transaction) => Promise<boolean>;
  /**
   * Plans by subscription id. Null if the subscription has several drafts: later drafts were planned while the first was open, so its
   * finalization changes them.
   */
  readonly #drafts = new Map<string, ClockAdvancePlan | null>();

  /** Version of each subscription, by id, and log position at which all its earlier usage charges were checked for late events. */
  readonly #checked = new Map<string, CheckedCharges>();

  constructor(isAlone: (transaction: Transaction) => Promise<boolean>) {
    this.#isAlone = isAlone;
  }

  /** Clears the cache, because an input of a plan may have changed. */
  forget(): void {
    this.#drafts.clear();
    this.#checked.clear();
  }

  /** Returns the log position. Must be called before planning, because a plan may lack events that are counted meanwhile. */
  async counted({ postgres }: Pick<Stores, 'postgres'>): Promise<CountedProgress> {
    return loadCountedProgress(postgres);
  }

  /** Caches the plans of the drafts. Called after their commit. */
  keep(drafted: readonly PlannedDraft[], counted: CountedProgress): void {
    for (const { invoice, subscription, is_settled } of drafted) {
      const checked = { subscription_version: subscription.version, counted };
      if (is_settled) this.#checked.set(subscription.id, checked);
      const { id, version, invoice_status } = invoice;
      if (invoice_status !== 'DRAFT') continue;
      const draft = { ...checked, invoice: { id, version } };
      this.#drafts.set(subscription.id, this.#drafts.has(subscription.id) ? null : draft);
    }
  }

  /**
   * Prepares a check of subscriptions whose periods end in this transaction; `counted` is the log position before planning. The returned
   * function is true if all earlier usage charges were checked and cannot have changed since. The plan then reads only charges due now.
   */
  async settledWithin(transaction: Transaction, counted: CountedProgress): Promise<(locked: Versioned) => boolean> {
    const isKnown = this.#checked.size > 0 && (await this.#isAlone(transaction));
    return ({ id, version }) => {
      const checked = this.#checked.get(id);
      return isKnown && checked?.subscription_version === version && checked.counted === counted;
    };
  }

  /**
   * Prepares a check of drafts that become final in this transaction. Each draft is checked once: its finalization changes the plans of
   * later drafts.
   */
  async within({ postgres }: Pick<Stores, 'postgres'>, transaction: Transaction): Promise<IsPlanCurrent> {
    const isKnown = this.#drafts.size > 0 && (await this.#isAlone(transaction));
    if (!isKnown) this.forget();
    const counted = isKnown ? await loadCountedProgress(postgres) : '';
    return ({ invoice, subscription, line_items }) => {
      const draft = this.#drafts.get(subscription?.id ?? '');
      this.#drafts.delete(subscription?.id ?? '');
      // Drops the plans of the other subscriptions on the invoice, too, because its finalization changes them.
      for (const { subscription_id } of line_items) this.#drafts.delete(subscription_id ?? '');
      return (
        draft?.invoice.id === invoice.id &&
        draft.invoice.version === invoice.version &&
        draft.subscription_version === subscription?.version &&
        draft.counted === counted
      );
    };
  }
}

/** Loads the progress of counting as text, for comparison. A recount after a correction raises `rebuilds`, so the text changes with it. */
async function loadCountedProgress(postgres: Stores['postgres']): Promise<CountedProgress> {
  const progress = await loadSharedProgress(postgres);
  return progress
    .map(({ partition, epoch, next_offset, rebuilds }) => [partition, epoch, next_offset, rebuilds].join())
    .join(' ');
}
