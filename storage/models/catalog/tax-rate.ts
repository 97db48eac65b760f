import { type TaxRate, taxRateShape } from '../../../core/catalog/tax/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface TaxRateModel extends TaxRate {}

export class TaxRateModel extends ScopedModel {
  static override tableName = 'tax_rates';
  static override recordName = 'tax rate';
  static override record = taxRateShape;

  /** The published rate with this code, locked for the rest of the transaction: it is neither archived nor attached twice meanwhile. */
  static async lockByCode(scope: Scope, code: string, database: Database): Promise<TaxRateModel> {
    const [rate] = await TaxRateModel.in(scope, database).where({ code, status: 'published' }).forUpdate();
    if (!rate) throw notFound('tax rate', code);
    return rate;
  }
}
