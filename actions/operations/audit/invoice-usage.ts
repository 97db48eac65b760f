/**
 * Audit of the usage of final invoices: each usage line equals the raw events as they were at its computation, up to the recorded log
 * offsets (marks) and with the corrections before them. Later events and corrections belong to later invoices, so they are no difference.
 * Covers the most recently finalized invoices, because their payment is due now.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { listNewestFinalInvoices } from '../../../storage/audit/invoices.ts';
import { gatherProvable } from '../../invoicing/proof/gather.ts';
import { listCountFaults } from '../../invoicing/proof/seal-lines.ts';
import type { AuditStores, OnFinding } from './findings.ts';

const NEWEST = 500;
/** Maximum number of events of an audited line. A line with more events would delay the audit of all others. */
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
    // Skipped: lines of an earlier version, which do not record their customers, edited lines, which have another quantity, and very large
    // ones.
    return counting && counted && !edited && (event_count ?? 0) <= EVENTS_MAX ? [{ line, counting }] : [];
  });
  for (const [line_id, fault] of await listCountFaults(stores, scope, counted))
    found({ kind: 'invoice_usage_differs', count: 1, what: `${id}, line ${line_id}: ${fault}` });
  return counted.length;
}
