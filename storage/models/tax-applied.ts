/** Table `taxes_applied`: made with the final amounts of an invoice. */
import { TaxApplied } from '../../core/tax/applied.ts';
import { ScopedModel } from './model.ts';

export interface TaxAppliedModel extends TaxApplied {}

export class TaxAppliedModel extends ScopedModel {
  static override tableName = 'taxes_applied';
  static override recordName = 'applied tax';
  /** They are made with their invoice, whose totals tell of them. */
  static override isAudited = false;
  static override record = TaxApplied;
  /** Its place among the taxes of the invoice, from 0. */
  declare position: number;
}
