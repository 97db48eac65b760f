import { type PriceUnit, priceUnitShape } from '../../../core/catalog/price-unit/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PriceUnitModel extends PriceUnit {}

export class PriceUnitModel extends ScopedModel {
  static override tableName = 'price_units';
  static override recordName = 'price unit';
  static override record = priceUnitShape;

  /** The published unit with this code, case-insensitive. */
  static async findByCode(scope: Scope, code: string, database: Database): Promise<PriceUnitModel | undefined> {
    const [unit] = await PriceUnitModel.in(scope, database)
      .where('status', 'published')
      .whereRaw('lower(code) = lower(?)', [code]);
    return unit;
  }

  static async fetchByCode(scope: Scope, code: string, database: Database): Promise<PriceUnitModel> {
    const unit = await PriceUnitModel.findByCode(scope, code, database);
    if (!unit) throw notFound('price unit', code);
    return unit;
  }
}
