/** Table `taxes_applied`: created with the final amounts of an invoice. */
import { TaxApplied } from '../../../core/catalog/tax/applied.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface TaxAppliedModel extends TaxApplied {}

export class TaxAppliedModel extends ScopedModel {
  static override tableName = 'taxes_applied';
  static override recordName = 'applied tax';
  /** Taxes are created with the invoice, whose totals are audited. */
  static override isAudited = false;
  static override record = TaxApplied;
  /** Index among the taxes of the invoice, from 0. */
  declare position: number;
}
