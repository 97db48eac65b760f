import type { Scope } from '../../../core/foundation/scope.ts';
import { type ImportMapping, importMappingShape } from '../../../core/platform/import/mapping/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface ImportMappingModel extends ImportMapping {}

export class ImportMappingModel extends ScopedModel {
  static override tableName = 'import_mappings';
  static override recordName = 'import mapping';
  static override record = importMappingShape;

  /** The published mapping with this name. */
  static async findByName(scope: Scope, name: string, database: Database): Promise<ImportMappingModel | undefined> {
    const [mapping] = await ImportMappingModel.in(scope, database).where({ status: 'published', name });
    return mapping;
  }
}
