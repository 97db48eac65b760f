import { type TaxAssociation, taxAssociationShape } from '../../../core/catalog/tax/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { narrow } from '../foundation/page.ts';

export interface TaxAssociationModel extends TaxAssociation {}

type TaxAttachment = Pick<
  TaxAssociation,
  'entity_type' | 'entity_id' | 'tax_rate_id' | 'currency' | 'start_date' | 'end_date'
> & { readonly id?: string };

export class TaxAssociationModel extends ScopedModel {
  static override tableName = 'tax_associations';
  static override recordName = 'tax association';
  static override record = taxAssociationShape;

  /** Finds another association of the rate with the same entity for an overlapping time. The caller has locked the row of the rate. */
  static async besides(scope: Scope, one: TaxAttachment, database: Database): Promise<TaxAssociationModel | undefined> {
    const { entity_type, entity_id, tax_rate_id, currency, start_date, end_date, id = '' } = one;
    const [other] = await narrow(TaxAssociationModel.in(scope, database), [['end_date', 'open at', start_date]])
      .where({ entity_type, entity_id, tax_rate_id, currency, status: 'published' })
      .where('start_date', '<', end_date ?? 'infinity')
      .whereNot('id', id)
      .limit(1);
    return other;
  }
}
