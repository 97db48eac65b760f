/**
 * Which drafts an advance of a clock need not plan a second time before they become final, because nothing can have changed since that
 * they were planned from (docs/decisions/0020-planned-once.md says why that is so). Whoever does anything in the advance but end plain
 * periods and make drafts final forgets them all; what cannot be told is planned anew.
 */
import type { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { sharedProgress } from '../../storage/progress/slices.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';

type Versioned = Pick<Invoice & SubscriptionModel, 'id' | 'version'>;

/** A draft, and its subscription as it is behind it. */
export type Drafted = { readonly invoice: Versioned; readonly subscription: Versioned };

/** Up to where events are counted: while it is the same, so is all usage. */
type Counted = string;
type InHand = {
  readonly invoice: Versioned;
  readonly subscription_version: number;
  readonly counted: Counted;
};

/** Whether a draft and its subscription, which are held, say what the last plan of the draft would say. */
export type SaysItsPlan = (held: {
  readonly invoice: Versioned;
  readonly subscription: Versioned | null;
  readonly line_items: readonly Pick<InvoiceLineItem, 'subscription_id'>[];
}) => boolean;

export class PlansInHand {
  /** Whether nobody else has written in the environment since the advance was asked for, nor will until the transaction ends. */
  readonly #isAlone: (transaction: Transaction) => Promise<boolean>;
  /** By the id of the subscription; null where it has several drafts, of which the later ones were planned beside the first. */
  readonly #drafts = new Map<string, InHand | null>();

  constructor(isAlone: (transaction: Transaction) => Promise<boolean>) {
    this.#isAlone = isAlone;
  }

  /** Something may have changed. */
  forget(): void {
    this.#drafts.clear();
  }

  /** To be asked before anything is planned: what is counted behind it is not known to be in the plan. */
  async counted({ postgres }: Pick<Stores, 'postgres'>): Promise<Counted> {
    return countedOf(postgres);
  }

  /** When they are committed. */
  keep(drafted: readonly Drafted[], counted: Counted): void {
    for (const { invoice, subscription } of drafted) {
      const { id, version } = invoice;
      const draft = { invoice: { id, version }, subscription_version: subscription.version, counted };
      this.#drafts.set(subscription.id, this.#drafts.has(subscription.id) ? null : draft);
    }
  }

  /** For drafts that become final in this transaction. Each is asked of once: what becomes final changes what later ones say. */
  async within({ postgres }: Pick<Stores, 'postgres'>, transaction: Transaction): Promise<SaysItsPlan> {
    const isKnown = this.#drafts.size > 0 && (await this.#isAlone(transaction));
    if (!isKnown) this.forget();
    const counted = isKnown ? await countedOf(postgres) : '';
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
async function countedOf(postgres: Stores['postgres']): Promise<Counted> {
  const progress = await sharedProgress(postgres);
  return progress
    .map(({ partition, epoch, next_offset, rebuilds }) => [partition, epoch, next_offset, rebuilds].join())
    .join(' ');
}
