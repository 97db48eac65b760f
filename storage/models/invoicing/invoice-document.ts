/** Table `invoice_documents`: the latest PDF of an invoice. A missing PDF is generated again. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import type { Database } from '../../foundation/stores.ts';

type OfInvoice = { readonly invoice_id: string; readonly invoice_version: number };

/** Finds the stored PDF; undefined if there is none of this version of the invoice. */
export async function findDocument(
  { tenant_id, environment_id }: Scope,
  { invoice_id, invoice_version }: OfInvoice,
  database: Database,
): Promise<Buffer | undefined> {
  const [row] = await database('invoice_documents')
    .where({ tenant_id, environment_id, invoice_id, invoice_version })
    .select('bytes');
  return row?.bytes;
}

/** Replaces the document of an earlier version, never that of a later one. */
export async function upsertDocument(
  { tenant_id, environment_id }: Scope,
  { invoice_id, invoice_version, bytes, now }: OfInvoice & { bytes: Buffer; now: Date },
  database: Database,
): Promise<void> {
  await database.raw(
    `insert into invoice_documents as kept (tenant_id, environment_id, invoice_id, invoice_version, bytes, created_at)
     values (?, ?, ?, ?, ?, ?)
     on conflict (tenant_id, environment_id, invoice_id) do update set
       invoice_version = excluded.invoice_version, bytes = excluded.bytes, created_at = excluded.created_at
     where kept.tenant_id = excluded.tenant_id and kept.environment_id = excluded.environment_id
       and kept.invoice_version <= excluded.invoice_version`,
    [tenant_id, environment_id, invoice_id, invoice_version, bytes, now],
  );
}

const RETENTION_DAYS = 90;

/** Deletes old documents, for the scheduler. Returns their number. */
export async function purgeDocuments(database: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - RETENTION_DAYS * DAY_MS);
  const answer = await database.raw('delete from invoice_documents where created_at < ?', [before]);
  return answer.rowCount ?? 0;
}
