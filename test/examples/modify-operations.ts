/** What a modification answers, by its type. */
import { modifyQuantity } from './change-operations.ts';
import type { Result } from './compare.ts';
import { addToGroup } from './group-operations.ts';
import { modifyTrial } from './subscription-operations.ts';

export function modifySubscription(given: Result): Result | Promise<Result> {
  if (given['type'] === 'grouped_invoicing_add') return addToGroup(given);
  return given['type'] === 'trial_end' ? modifyTrial(given) : modifyQuantity(given);
}
