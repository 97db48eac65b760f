import { type Addon, addonShape } from '../../../core/catalog/addon/record.ts';
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface AddonModel extends Addon {}

export class AddonModel extends ScopedModel {
  static override tableName = 'addons';
  static override recordName = 'add-on';
  static override record = addonShape;

  /** The published add-on with this key; an archived add-on no longer holds its key. */
  static async fetchByKey(scope: Scope, lookup_key: string, database: Database): Promise<AddonModel> {
    const [addon] = await AddonModel.in(scope, database).where({ lookup_key, status: 'published' });
    if (!addon) throw notFound('add-on', lookup_key);
    return addon;
  }
}
