/** Table `credit_grants`. */
import { type CreditGrant, creditGrantShape } from '../../core/credit-grant/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, updatedBy } from '../../core/stamp.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export interface CreditGrantModel extends CreditGrant {}

/** Whose templates they are. */
type Seller = 'plan_id' | 'addon_id';

export class CreditGrantModel extends ScopedModel {
  static override tableName = 'credit_grants';
  static override recordName = 'credit grant';
  static override record = creditGrantShape;

  /** The published grants of these plans or add-ons, in the order in which they were made. */
  static publishedOf(scope: Scope, [seller, ids]: [Seller, readonly string[]], database: Database) {
    return CreditGrantModel.in(scope, database)
      .where('status', 'published')
      .whereIn(seller, [...ids])
      .orderBy(['created_at', 'id']);
  }

  /** Who gives them is archived: so are they. */
  static async archiveOf(
    scope: Scope,
    [seller, id]: [Seller, string],
    { by, database }: { by: Author; database: Database },
  ): Promise<void> {
    await CreditGrantModel.in(scope, database)
      .where({ [seller]: id, status: 'published' })
      .patch({ status: 'archived', ...updatedBy(by) });
  }
}
