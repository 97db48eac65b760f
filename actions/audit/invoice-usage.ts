/**
 * Audit of the usage of final invoices: each usage line says what the raw events come to as they stood when it was computed, up to its marks and
 * with the corrections before them. Later events, and later corrections, are for later invoices, so nothing that came since is a difference. Of the
 * invoices that became final last: their money is asked for now.
 */
import type { Scope } from '../../core/scope.ts';
import { listNewestFinalInvoices } from '../../storage/audit/invoices.ts';
import type { Stores } from '../../storage/stores.ts';
import { gatherProvable } from '../proof/gather.ts';
import { listCountFaults } from '../proof/seal-lines.ts';
import type { OnFinding } from './findings.ts';

type AuditStores = Pick<Stores, 'postgres' | 'clickhouse'>;

const NEWEST = 500;
/** One of more events would keep the audit from all others. */
const EVENTS_MAX = 1_000_000;

export async function auditInvoiceUsage(stores: AuditStores, found: OnFinding): Promise<{ usage_lines: number }> {
  let usage_lines = 0;
  for (const { id, ...scope } of await listNewestFinalInvoices(stores.postgres, NEWEST))
    usage_lines += await auditInvoice(stores, scope, { id, found });
  return { usage_lines };
}

async function auditInvoice(
  stores: AuditStores,
  scope: Scope,
  { id, found }: { id: string; found: OnFinding },
): Promise<number> {
  const { lines } = await gatherProvable(stores.postgres, scope, id);
  const counted = lines.flatMap(({ line, counting }) => {
    const { counted, event_count, edited } = line.computed_from ?? {};
    // What an earlier version computed does not say whose events; what somebody has set says another quantity.
    return counting && counted && !edited && (event_count ?? 0) <= EVENTS_MAX ? [{ line, counting }] : [];
  });
  for (const [line_id, fault] of await listCountFaults(stores, scope, counted))
    found({ kind: 'invoice_usage_differs', count: 1, what: `${id}, line ${line_id}: ${fault}` });
  return counted.length;
}
