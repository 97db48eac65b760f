/** Table `audit_entries`, as it is read; tell-changes.ts writes it. */
import type { AuditEntry } from '../../core/audit/record.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export interface AuditEntryModel extends AuditEntry {}

export class AuditEntryModel extends ScopedModel {
  static override tableName = 'audit_entries';
  static override recordName = 'audit log entry';
  static override isAudited = false;
  static override get jsonAttributes() {
    return ['before', 'after'];
  }
}

const PURGE_BATCH_SIZE = 10_000;

/**
 * Those of all tenants that were written before this instant; in portions, so that none holds its rows for long. An environment with a
 * clock of its own goes by other instants, and keeps its own.
 */
export async function purgeAuditEntries(database: Database, before: Date): Promise<number> {
  for (let purged = 0; ; ) {
    const { rowCount } = await database.raw(
      `delete from audit_entries where id in (
         select a.id from audit_entries a
          where a.created_at < ? and not exists (select from test_clocks t where t.tenant_id = a.tenant_id and t.environment_id = a.environment_id)
          limit ?)`,
      [before, PURGE_BATCH_SIZE],
    );
    purged += rowCount ?? 0;
    if ((rowCount ?? 0) < PURGE_BATCH_SIZE) return purged;
  }
}
