/**
 * Which drafts an advance of a clock need not plan a second time before they become final, because nothing can have changed since that
 * they were planned from (docs/decisions/0009-draft-plan-cache.md says why that is so). Whoever does anything in the advance but end plain
 * periods and make drafts final forgets them all; what cannot be told is planned anew.
 */
import type { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { loadSharedProgress } from '../../storage/progress/slices.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';

type Versioned = Pick<Invoice & SubscriptionModel, 'id' | 'version'>;

/** A draft, and its subscription as it is behind it. `is_settled`: its plan has looked at all usage charges before it. */
export type PlannedDraft = {
  readonly invoice: Versioned & Pick<Invoice, 'invoice_status'>;
  readonly subscription: Versioned;
  readonly is_settled: boolean;
};

/** Up to where events are counted: while it is the same, so is all usage. */
type CountedProgress = string;
type CheckedCharges = { readonly subscription_version: number; readonly counted: CountedProgress };
type ClockAdvancePlan = CheckedCharges & { readonly invoice: Versioned };

/** Whether a draft and its subscription, which are held, say what the last plan of the draft would say. */
export type IsPlanCurrent = (held: {
  readonly invoice: Versioned;
  readonly subscription: (Versioned & Scope & Pick<SubscriptionModel, 'customer_id'>) | null;
  readonly line_items: readonly Pick<InvoiceLineItem, 'subscription_id'>[];
}) => boolean | Promise<boolean>;

export class ClockAdvancePlanCache {
  /** Whether nobody else has written in the environment since the advance was asked for, nor will until the transaction ends. */
  readonly #isAlone: (transaction: Transaction) => Promise<boolean>;
  /** By the id of the subscription; null where it has several drafts, of which the later ones were planned beside the first. */
  readonly #drafts = new Map<string, ClockAdvancePlan | null>();

  /** By the id of the subscription: when all that it was charged for usage was looked at. */
  readonly #checked = new Map<string, CheckedCharges>();

  constructor(isAlone: (transaction: Transaction) => Promise<boolean>) {
    this.#isAlone = isAlone;
  }

  /** Something may have changed. */
  forget(): void {
    this.#drafts.clear();
    this.#checked.clear();
  }

  /** To be asked before anything is planned: what is counted behind it is not known to be in the plan. */
  async counted({ postgres }: Pick<Stores, 'postgres'>): Promise<CountedProgress> {
    return loadCountedProgress(postgres);
  }

  /** When they are committed. */
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
   * For subscriptions whose periods end in this transaction, where so much is counted before they are planned: whether what was used before
   * was charged, and nothing of it can have changed since. Then only what is due now is asked for.
   */
  async settledWithin(transaction: Transaction, counted: CountedProgress): Promise<(held: Versioned) => boolean> {
    const isKnown = this.#checked.size > 0 && (await this.#isAlone(transaction));
    return ({ id, version }) => {
      const checked = this.#checked.get(id);
      return isKnown && checked?.subscription_version === version && checked.counted === counted;
    };
  }

  /** For drafts that become final in this transaction. Each is asked of once: what becomes final changes what later ones say. */
  async within({ postgres }: Pick<Stores, 'postgres'>, transaction: Transaction): Promise<IsPlanCurrent> {
    const isKnown = this.#drafts.size > 0 && (await this.#isAlone(transaction));
    if (!isKnown) this.forget();
    const counted = isKnown ? await loadCountedProgress(postgres) : '';
    return ({ invoice, subscription, line_items }) => {
      const draft = this.#drafts.get(subscription?.id ?? '');
      this.#drafts.delete(subscription?.id ?? '');
      // Of whoever stands on it, too.
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

/** Rows that are counted anew after a correction are counted, too. */
async function loadCountedProgress(postgres: Stores['postgres']): Promise<CountedProgress> {
  const progress = await loadSharedProgress(postgres);
  return progress
    .map(({ partition, epoch, next_offset, rebuilds }) => [partition, epoch, next_offset, rebuilds].join())
    .join(' ');
}
