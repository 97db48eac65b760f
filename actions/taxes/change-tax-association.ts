/** Changes what is given of a published tax association. */
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { checkAssociation, type TaxAssociation } from '../../core/tax/record.ts';
import { TaxAssociationModel } from '../../storage/models/tax-association.ts';
import type { Stores } from '../../storage/stores.ts';

export async function changeTaxAssociation(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; changes: Partial<TaxAssociation>; author: Author },
): Promise<TaxAssociationModel> {
  const { id, changes, author } = request;
  return stores.postgres.transaction(async (database) => {
    const association = await TaxAssociationModel.fetchPublished(scope, id, { database, lock: true });
    checkAssociation({ ...association, ...changes });
    return TaxAssociationModel.change(association, changes, { by: author, database });
  });
}
