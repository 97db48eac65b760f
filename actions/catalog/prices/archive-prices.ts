/** The prices of a plan or an add-on are archived with it (docs/rules/records.md, "Archiving"), in its transaction. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';

/**
 * Archives the prices of a plan or an add-on in the order of their sequence, as invoice lines are ordered. Repeats until no unarchived
 * price remains: a price may get a successor during the wait for its lock.
 */
export async function archivePrices(
  scope: Scope,
  entity: { entity_type: 'PLAN' | 'ADDON'; entity_id: string },
  { by, database }: { by: Author; database: Database },
): Promise<void> {
  const published = PriceModel.in(scope, database)
    .where({ ...entity, status: 'published' })
    .orderBy('sequence')
    .forUpdate();
  for (let prices = await published.clone(); prices.length > 0; prices = await published.clone())
    for (const price of prices) await PriceModel.change(price, { status: 'archived' }, { by, database });
}
