/** Table `audit_entries`, as it is read; tell-changes.ts writes it. */
import type { AuditEntry } from '../../core/audit/record.ts';
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
