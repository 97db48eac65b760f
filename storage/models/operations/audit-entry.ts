/** Table `audit_entries`, for reading; foundation/record-changes.ts writes it. */
import type { AuditEntry } from '../../../core/platform/audit/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

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
 * Deletes the entries of all tenants from before this instant, in batches, so that row locks stay short. An environment with a test
 * clock keeps its entries, because its instants are not those of the machine.
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
