/** Copies a plan with its prices, entitlements and credit grants under a new name and lookup key. Ended prices are not copied. */
import type { PlanFields } from '../../../core/catalog/plan/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { toRootId } from '../../../core/subscriptions/plan-sync.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { emitEntitlementChanges } from '../entitlements/emit-entitlement.ts';
import { formatPlanKeyConflict } from './create-plan.ts';

type PlanClone = {
  id: string;
  /** The copy has its own name and key; omitted fields are copied. */
  fields: Partial<PlanFields> & { name: string; lookup_key: string };
  author: Author;
};

export async function clonePlan(stores: Pick<Stores, 'postgres'>, scope: Scope, clone: PlanClone): Promise<PlanModel> {
  const { id, fields, author } = clone;
  return stores.postgres.transaction(async (database) => {
    const source = await PlanModel.fetchPublished(scope, id, { database, lock: true });
    const record = {
      ...source,
      description: fields.description ?? source.description,
      display_order: fields.display_order ?? source.display_order,
      metadata: fields.metadata ?? source.metadata,
      name: fields.name,
      lookup_key: fields.lookup_key,
      id: newId('plan', author.now.getTime()),
      ...createdBy(author),
    };
    const conflict = formatPlanKeyConflict(fields.lookup_key);
    const plan = await PlanModel.add(scope, record, { database, conflict });
    const prices = await PriceModel.current(scope, author.now, database)
      .where({ entity_type: 'PLAN', entity_id: id })
      .orderBy('sequence');
    // A lineage is a price with its successors. Its copies refer to the first copied price, because a one-time charge is charged for the
    // first price only.
    const firsts = new Map<string, string>();
    const copies = prices.map((price) => {
      const id = newId('price', author.now.getTime());
      const first = firsts.get(toRootId(price));
      if (first === undefined) firsts.set(toRootId(price), id);
      return {
        ...price,
        // A lookup key names one price, so the copy has none.
        lookup_key: null,
        parent_price_id: first ?? '',
        display_name: price.display_name === source.name ? plan.name : price.display_name,
        entity_id: plan.id,
        id,
        ...createdBy(author),
      };
    });
    await PriceModel.addAll(scope, copies, { database });
    await copyGrants(plan, id, { scope, author, database });
    const entitlements = await EntitlementModel.buildPublishedQuery(scope, [id], database);
    const granted = entitlements.map((entitlement) => ({
      ...entitlement,
      entity_id: plan.id,
      id: newId('entitlement', author.now.getTime()),
      ...createdBy(author),
    }));
    const made = await EntitlementModel.addAll(scope, granted, { database });
    await emitEntitlementChanges(database, 'created', { entitlements: made, by: author });
    return plan;
  });
}

async function copyGrants(
  plan: PlanModel,
  source_id: string,
  { scope, author, database }: { scope: Scope; author: Author; database: Database },
): Promise<void> {
  const grants = await CreditGrantModel.buildPublishedQuery(scope, ['plan_id', [source_id]], database);
  const copies = grants.map((grant) => ({
    ...grant,
    plan_id: plan.id,
    id: newId('credit_grant', author.now.getTime()),
    ...createdBy(author),
  }));
  await CreditGrantModel.addAll(scope, copies, { database });
}
