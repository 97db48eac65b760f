/** Table `credit_grants`. */
import { type CreditGrant, creditGrantShape } from '../../core/credit-grant/record.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import type { Database } from '../stores.ts';
import { AddonAssociationModel } from './addon-association.ts';
import { ScopedModel } from './model.ts';

export interface CreditGrantModel extends CreditGrant {}

/** Whose templates they are. */
type CreditGrantSeller = 'plan_id' | 'addon_id';
/** Who gives them. */
type CreditGrantOwner = CreditGrantSeller | 'subscription_id';

export class CreditGrantModel extends ScopedModel {
  static override tableName = 'credit_grants';
  static override recordName = 'credit grant';
  static override record = creditGrantShape;

  /** The published grants of these plans, add-ons or subscriptions, in the order in which they were made. */
  static buildPublishedQuery(scope: Scope, [giver, ids]: [CreditGrantOwner, readonly string[]], database: Database) {
    return CreditGrantModel.in(scope, database)
      .where('status', 'published')
      .whereIn(giver, [...ids])
      .orderBy(['created_at', 'id']);
  }

  /** All published ones that a subscription has: of its plan, its own, and of every add-on that it ever had. */
  static reaching(
    scope: Scope,
    { subscription_id, plan_id }: { subscription_id: string; plan_id: string },
    database: Database,
  ) {
    const addons = AddonAssociationModel.in(scope, database).where('entity_id', subscription_id).select('addon_id');
    return CreditGrantModel.in(scope, database)
      .where('status', 'published')
      .where((given) => {
        void given
          .where({ plan_id })
          .orWhere({ subscription_id })
          .orWhereIn('addon_id', addons as never);
      })
      .orderBy(['created_at', 'id']);
  }

  /** Who gives them is archived: so are they. */
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
