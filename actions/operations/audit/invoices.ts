/**
 * Audit of invoices: their sums equal those of their lines, payments, refunds and credit notes, and their numbers have no gap
 * (docs/rules/invoices.md, "Totals", "Payment" and "Numbers").
 */
import {
  findInvoiceFaults,
  type InvoiceFault,
  type InvoiceSums,
  loadInvoiceSums,
  sampleNumberCounters,
} from '../../../storage/audit/invoices.ts';
import { sampleIds } from '../../../storage/audit/questions.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { OnFinding } from './findings.ts';

const FAULTS_MAX = 1_000;
const SAMPLE = 200;
const COUNTERS = 3;

export async function auditInvoices({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<InvoiceSums> {
  for (const fault of await findInvoiceFaults(postgres, { invoices: null, limit: FAULTS_MAX }))
    found(toInvoiceFinding(fault));
  return loadInvoiceSums(postgres);
}

/** Audits some invoices, and the numbers of some counters, for the continuous audit. */
export async function sampleInvoices({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<void> {
  const invoices = await sampleIds(postgres, 'invoices', SAMPLE);
  const counters = await sampleNumberCounters(postgres, COUNTERS);
  for (const fault of await findInvoiceFaults(postgres, { invoices, counters, limit: FAULTS_MAX }))
    found(toInvoiceFinding(fault));
}

function toInvoiceFinding({ kind, id, stored, found }: InvoiceFault) {
  return { kind, count: 1, what: `${id} says ${stored}, and ${found}` };
}
