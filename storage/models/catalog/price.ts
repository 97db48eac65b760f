/** Table `prices`. `sequence` is written by the database (sql/postgres/0010-catalogue.sql). */

import { type Price, priceShape } from '../../../core/catalog/price/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { narrow } from '../foundation/page.ts';

export interface PriceModel extends Price {}

export class PriceModel extends ScopedModel {
  static override tableName = 'prices';
  static override recordName = 'price';
  static override record = priceShape;

  /** Published prices that have not ended, including those that start later. */
  static current(scope: Scope, now: Date, database: Database) {
    return narrow(PriceModel.in(scope, database), [
      ['status', 'published'],
      ['end_date', 'open at', now],
    ]);
  }

  /** The price with this lookup key that is in force, else the one that starts next, else the one that ended last. */
  static async fetchByKey(
    scope: Scope,
    lookup_key: string,
    at: { now: Date; database: Database },
  ): Promise<PriceModel> {
    const now = at.now.toISOString();
    const [price] = await PriceModel.in(scope, at.database)
      .where({ lookup_key, status: 'published' })
      .orderByRaw('(start_date <= ? and (end_date is null or end_date > ?)) desc', [now, now])
      .orderByRaw('(start_date > ?) desc', [now])
      .orderByRaw('case when start_date > ? then start_date end asc', [now])
      .orderBy('end_date', 'desc')
      .orderBy('id', 'desc')
      .limit(1);
    if (!price) throw notFound('price', lookup_key);
    return price;
  }
}
