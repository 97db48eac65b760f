/**
 * Changes or archives a tax rate. Both are refused while it has associations. After an invoice has used it, it can only be archived
 * (docs/rules/taxes.md, "Rates in use").
 */

import type { TaxRate } from '../../../core/catalog/tax/record.ts';
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';

export async function changeTaxRate(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; changes: Partial<TaxRate>; author: Author },
): Promise<TaxRateModel> {
  const { id, changes, author } = request;
  return stores.postgres.transaction(async (database) => {
    const rate = await (changes.status === undefined
      ? TaxRateModel.fetchChangeable(scope, id, database)
      : TaxRateModel.fetchPublished(scope, id, { database, lock: true }));
    const [used] = await TaxAssociationModel.in(scope, database)
      .select('id')
      .where({ tax_rate_id: id, status: 'published' })
      .limit(1);
    if (used) throw notAllowed(`tax rate ${id} has associations: remove them first`);
    const [taxed] = await TaxAppliedModel.in(scope, database).select('id').where({ tax_rate_id: id }).limit(1);
    // Invoices show the rate's name and value, so after its use only its status may change.
    if (taxed && Object.keys(changes).some((field) => field !== 'status'))
      throw notAllowed(`tax rate ${id} is used on invoices: make another one`);
    const conflict = `a tax rate with code ${changes.code} exists already`;
    return TaxRateModel.change(rate, changes, { by: author, database, conflict });
  });
}
