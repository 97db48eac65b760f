import { type CreditGrant, creditGrantShape } from '../../../core/catalog/credit-grant/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CreditGrantModel extends CreditGrant {}

/** Column of a template's owner. */
type CreditGrantSeller = 'plan_id' | 'addon_id';
/** Column of a grant's owner. */
type CreditGrantOwner = CreditGrantSeller | 'subscription_id';

export class CreditGrantModel extends ScopedModel {
  static override tableName = 'credit_grants';
  static override recordName = 'credit grant';
  static override record = creditGrantShape;

  /** Published grants of these plans, add-ons or subscriptions, in the order of their creation. */
  static buildPublishedQuery(scope: Scope, [giver, ids]: [CreditGrantOwner, readonly string[]], database: Database) {
    return CreditGrantModel.in(scope, database)
      .where('status', 'published')
      .whereIn(giver, [...ids])
      .orderBy(['created_at', 'id']);
  }

  /** Archives the grants when their plan or add-on is archived. */
  static async archiveBySeller(
    scope: Scope,
    [seller, id]: [CreditGrantSeller, string],
    { by, database }: { by: Author; database: Database },
  ): Promise<void> {
    const records = await CreditGrantModel.in(scope, database)
      .where({ [seller]: id, status: 'published' })
      .forUpdate();
    await CreditGrantModel.changeAll(scope, { records, changes: { status: 'archived' } }, { by, database });
  }
}
