/**
 * Writes the entries of table `audit_entries` (operations/audit-entry.ts). The models call it with each change in the
 * same transaction (model.ts), so no action can omit an entry.
 */
import type { Model } from 'objection';
import { deriveAuditAction, redactSecrets, SYSTEM_USER } from '../../../core/platform/audit/record.ts';
import { isBatched, write } from '../../concurrency/batched.ts';
import { newId } from '../../foundation/new-id.ts';
import { currentRequestContext, runAsSystem } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';
import { DEFERRED, PREPARED } from '../../postgres/interceptors/bundled-statements.ts';
import { sendStatement } from '../../postgres/pool/statement-client.ts';
import { lockClock } from './lock-clock.ts';
import { encodeTextArray } from './text-array.ts';

/** A record before and after a change; null before its creation and after its deletion. */
export type RecordChange<M> = { readonly before: M | null; readonly after: M | null; readonly at?: string };
type ChangedTable = { readonly entity_type: string; readonly tenant_id: string; readonly environment_id: string };
type RecordState = Readonly<Record<string, unknown>>;

/** Runs in the caller's transaction if there is one, so that a change and its entry are atomic. */
export function runInTransaction<Result>(
  database: Database,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  return database.isTransaction ? work(database) : database.transaction(work);
}

/**
 * Writes the audit entries of any number of records by one statement, with one parameter per column. In an environment
 * with a test clock it locks the clock.
 */
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
  const values = [
    of.tenant_id,
    of.environment_id,
    of.entity_type,
    context?.user_id || stampedBy(changes[0]) || SYSTEM_USER,
    context?.secret_id ?? null,
    context?.request_id ?? null,
    ...ENTRY_PARTS.map(list),
  ];
  const options = isBatched(transaction) ? PREPARED : DEFERRED;
  // The tenant guard would refuse an entry in another environment, such as that of an API key which a request creates
  // for another environment of its tenant.
  await write(transaction, () =>
    runAsSystem(() => sendStatement(transaction, { text: INSERT_ENTRIES, values, ...options })),
  );
}

const INSERT_ENTRIES = `insert into audit_entries (tenant_id, environment_id, id, entity_type, entity_id, action, user_id, secret_id,
                                                   request_id, before, after, created_at)
  select $1::text, $2::text, e.id, $3::text, e.entity_id, e.action, $4::text, $5::text, $6::text, e.before::jsonb, e.after::jsonb,
         coalesce(e.created_at::timestamptz, now())
    from unnest($7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
         as e (id, entity_id, action, before, after, created_at)`;

/** Finds the user for an entry that a job writes: the user who requested the work, as the record names it. */
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
