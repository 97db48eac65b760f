/**
 * What is written to table `audit_entries` (audit-entry.ts). The models write it with what they write themselves (model.ts), in the same transaction, so no verb can
 * forget it.
 */
import type { Model } from 'objection';
import { deriveAuditAction, redactSecrets, SYSTEM_USER } from '../../core/audit/record.ts';
import { newId } from '../new-id.ts';
import { encodeTextArray } from '../postgres/text-array.ts';
import { currentRequestContext, runAsSystem } from '../request-context.ts';
import type { Database } from '../stores.ts';
import { write } from './batched.ts';
import { lockClock } from './lock-clock.ts';

/** What of a record is told: as it was, and as it is; null before it was made, and after it was taken away. */
export type RecordChange<M> = { readonly before: M | null; readonly after: M | null; readonly at?: string };
/** Which table it is of, and whose. */
type ChangedTable = { readonly entity_type: string; readonly tenant_id: string; readonly environment_id: string };
type RecordState = Readonly<Record<string, unknown>>;

/** The change and its entry, or neither. */
export function runInTransaction<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  return database.isTransaction ? work(database) : database.transaction(work);
}

/** One statement, however many records were changed; the list of them is one value. Where time is that of a clock, it is held. */
export async function recordChanges<M extends Model>(
  changes: readonly RecordChange<M>[],
  of: ChangedTable,
  transaction: Database,
): Promise<void> {
  if (changes.length === 0) return;
  await lockClock(transaction);
  const context = currentRequestContext();
  const entries = changes.map(toAuditEntry);
  const list = (part: keyof AuditEntryRow) => encodeTextArray(entries.map((entry) => entry[part]));
  const statement = async () =>
    transaction.raw(
      `insert into audit_entries (tenant_id, environment_id, id, entity_type, entity_id, action, user_id, secret_id, request_id,
                                before, after, created_at)
     select ?::text, ?::text, e.id, ?::text, e.entity_id, e.action, ?::text, ?::text, ?::text, e.before::jsonb, e.after::jsonb,
            coalesce(e.created_at::timestamptz, now())
       from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
            as e (id, entity_id, action, before, after, created_at)`,
      [
        of.tenant_id,
        of.environment_id,
        of.entity_type,
        context?.user_id || stampedBy(changes[0]) || SYSTEM_USER,
        context?.secret_id ?? null,
        context?.request_id ?? null,
        ...ENTRY_PARTS.map(list),
      ] as never,
    );
  // A key that is made for another environment of the tenant is told there.
  await write(transaction, () => runAsSystem(statement));
}

/** What a user has asked for and a job does is the user's: the record says so. */
function stampedBy<M extends Model>(change: RecordChange<M> | undefined): string | undefined {
  const { updated_by } = (change?.after ?? {}) as unknown as RecordState;
  return typeof updated_by === 'string' ? updated_by : undefined;
}

const ENTRY_PARTS = ['id', 'entity_id', 'action', 'before', 'after', 'created_at'] as const;
type AuditEntryRow = Readonly<Record<(typeof ENTRY_PARTS)[number], string | null>>;

function toAuditEntry<M extends Model>({ before, after, at: at_text }: RecordChange<M>): AuditEntryRow {
  const row = (after ?? before) as unknown as RecordState;
  const { id, updated_at } = row;
  return {
    id: newId('audit_entry'),
    entity_id: String(id),
    action: deriveAuditAction(before as unknown as RecordState | null, after as unknown as RecordState | null),
    before: before && redactSecrets(before),
    after: after && redactSecrets(after),
    created_at: at_text ?? (typeof updated_at === 'string' ? updated_at : null),
  };
}
