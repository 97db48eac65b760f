/**
 * What a type of modification is: it gathers and decides, says what would change, and can do it. A preview stops there, so
 * that it says what is then done (docs/rules/subscriptions.md, "Modifications").
 */
import type { Author } from '../../../core/stamp.ts';
import type { ChangedResources } from '../../../core/subscription/changed-resources.ts';
import type { Modification, ModifyType } from '../../../core/subscription/modification.ts';
import type { Subscription } from '../../../core/subscription/record.ts';
import type { SubscriptionModel } from '../../../storage/models/subscription.ts';
import type { Database, Stores, Transaction } from '../../../storage/stores.ts';

export type ModifyInput<Type extends ModifyType = ModifyType> = {
  readonly stores: Stores;
  /** The transaction that holds the subscription's row, or the pool for a preview. */
  readonly database: Database;
  readonly subscription: SubscriptionModel;
  readonly params: Extract<Modification, { type: Type }>['params'];
  readonly author: Author;
};

export type PlannedModification = {
  /** With empty ids for what is not there yet. */
  readonly preview: ChangedResources;
  /** What changes on the subscription itself; it is written, and told, by who calls. */
  readonly changes: Partial<Subscription>;
  /** Everything else. */
  apply(transaction: Transaction): Promise<ChangedResources>;
};

export type PlanModification<Type extends ModifyType = ModifyType> = (
  input: ModifyInput<Type>,
) => Promise<PlannedModification>;
