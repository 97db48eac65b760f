/** Table `tax_associations`. */
import { type TaxAssociation, taxAssociationShape } from '../../core/tax/record.ts';
import { ScopedModel } from './model.ts';

export interface TaxAssociationModel extends TaxAssociation {}

export class TaxAssociationModel extends ScopedModel {
  static override tableName = 'tax_associations';
  static override recordName = 'tax association';
  static override record = taxAssociationShape;
}
