/** Table `environment_copies`: what a record of one environment is called in another, since it was copied there. */
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export class EnvironmentCopyModel extends ScopedModel {
  static override tableName = 'environment_copies';
  static override recordName = 'copy';
  /** The copies themselves are. */
  static override isAudited = false;
  static override idColumn = ['tenant_id', 'environment_id', 'source_environment_id', 'entity', 'source_id'];
  declare source_environment_id: string;
  declare entity: string;
  declare source_id: string;
  declare target_id: string;
  declare workflow_id: string;
  declare created_at: string;

  /** What this record of the source is called in the scope; undefined where it was not copied. */
  static async findPair(
    scope: Scope,
    source: { source_environment_id: string; entity: string; source_id: string },
    database: Database,
  ): Promise<EnvironmentCopyModel | undefined> {
    const [pair] = await EnvironmentCopyModel.in(scope, database).where(source);
    return pair;
  }

  /** What this run has copied, in the order of the copies. */
  static async ofRun(scope: Scope, workflow_id: string, database: Database): Promise<EnvironmentCopyModel[]> {
    return EnvironmentCopyModel.in(scope, database).where({ workflow_id }).orderBy('target_id');
  }
}
