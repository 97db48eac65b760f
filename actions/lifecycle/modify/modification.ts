/**
 * Contract of a modification type: it gathers data, plans the changes, describes them and can apply them. A preview runs the same plan
 * without `apply`, so both show the same result (docs/rules/subscriptions.md, "Modifications").
 */
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Modification, ModifyType } from '../../../core/subscriptions/modification.ts';
import type { Subscription } from '../../../core/subscriptions/record.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { ChangedResources } from './changed-resources.ts';

export type ModifyInput<Type extends ModifyType = ModifyType> = {
  readonly stores: Stores;
  /** The transaction that holds the lock on the subscription's row, or the pool for a preview. */
  readonly database: Database;
  readonly subscription: SubscriptionModel;
  readonly params: Extract<Modification, { type: Type }>['params'];
  readonly author: Author;
};

export type PlannedModification = {
  /** Result of a preview. New records have empty ids. */
  readonly preview: ChangedResources;
  /** Changes of the subscription itself; the caller writes them and emits their event. */
  readonly changes: Partial<Subscription>;
  /** Writes everything besides `changes`. */
  apply(transaction: Transaction): Promise<ChangedResources>;
};

export type PlanModification<Type extends ModifyType = ModifyType> = (
  input: ModifyInput<Type>,
) => Promise<PlannedModification>;
