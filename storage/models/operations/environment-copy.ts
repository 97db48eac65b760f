/** Table `environment_copies`: maps a record of one environment to its copy in another. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export class EnvironmentCopyModel extends ScopedModel {
  static override tableName = 'environment_copies';
  static override recordName = 'copy';
  /** Not audited: the entries of the copied records cover it. */
  static override isAudited = false;
  static override idColumn = ['tenant_id', 'environment_id', 'source_environment_id', 'entity', 'source_id'];
  declare source_environment_id: string;
  declare entity: string;
  declare source_id: string;
  declare target_id: string;
  declare workflow_id: string;
  declare created_at: string;

  /** The copy of this source record in the scope; undefined if it was not copied. */
  static async findPair(
    scope: Scope,
    source: { source_environment_id: string; entity: string; source_id: string },
    database: Database,
  ): Promise<EnvironmentCopyModel | undefined> {
    const [pair] = await EnvironmentCopyModel.in(scope, database).where(source);
    return pair;
  }

  /** Copies that this run made, in the order of their ids. */
  static async ofRun(scope: Scope, workflow_id: string, database: Database): Promise<EnvironmentCopyModel[]> {
    return EnvironmentCopyModel.in(scope, database).where({ workflow_id }).orderBy('target_id');
  }
}
