/** Updates a published tax association. */

import { checkAssociation, type TaxAssociation } from '../../../core/catalog/tax/record.ts';
import { alreadyExists } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';

export async function changeTaxAssociation(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; changes: Partial<TaxAssociation>; author: Author },
): Promise<TaxAssociationModel> {
  const { id, changes, author } = request;
  return stores.postgres.transaction(async (database) => {
    const association = await TaxAssociationModel.fetchChangeable(scope, id, database);
    const changed = checkAssociation({ ...association, ...changes });
    // Attaching a rate locks it as well, so an entity cannot have the same rate twice at one time.
    await TaxRateModel.fetch(scope, association.tax_rate_id, { database, lock: true });
    if (await TaxAssociationModel.besides(scope, changed, database))
      throw alreadyExists(`${changed.entity_type} ${changed.entity_id} has this tax rate at that time already`);
    return TaxAssociationModel.change(association, changes, { by: author, database });
  });
}
