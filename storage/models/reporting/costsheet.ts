import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Costsheet, costsheetShape } from '../../../core/invoicing/costs/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CostsheetModel extends Costsheet {}

export class CostsheetModel extends ScopedModel {
  static override tableName = 'costsheets';
  static override recordName = 'cost sheet';
  static override record = costsheetShape;

  /** The cost sheet for computing costs: the published one that was created last. */
  static async findActive(scope: Scope, database: Database): Promise<CostsheetModel | null> {
    const [sheet] = await CostsheetModel.in(scope, database)
      .where('status', 'published')
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(1);
    return sheet ?? null;
  }

  static async fetchActive(scope: Scope, database: Database): Promise<CostsheetModel> {
    const sheet = await CostsheetModel.findActive(scope, database);
    if (!sheet) throw new FarthingError('not_found', 'this environment has no cost sheet');
    return sheet;
  }
}
