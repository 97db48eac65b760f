/**
 * Audit of invoices: their sums are those of their lines, payments, refunds and credit notes, and their numbers have no gap
 * (docs/rules/invoices.md, "Totals", "Payment" and "Numbers").
 */
import {
  type InvoiceFault,
  type InvoiceSums,
  invoiceFaults,
  invoiceSums,
  someInvoices,
} from '../../storage/audit/invoices.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Found } from './findings.ts';

const FAULTS_MAX = 1_000;
const SAMPLE = 200;

export async function auditInvoices({ postgres }: Pick<Stores, 'postgres'>, found: Found): Promise<InvoiceSums> {
  for (const fault of await invoiceFaults(postgres, { invoices: null, limit: FAULTS_MAX })) found(findingOf(fault));
  return invoiceSums(postgres);
}

/** Of some invoices, all the time; their numbers are looked at by the whole audit alone. */
export async function sampleInvoices({ postgres }: Pick<Stores, 'postgres'>, found: Found): Promise<void> {
  const invoices = await someInvoices(postgres, SAMPLE);
  for (const fault of await invoiceFaults(postgres, { invoices, limit: FAULTS_MAX })) found(findingOf(fault));
}

function findingOf({ kind, id, stated, found }: InvoiceFault) {
  return { kind, count: 1, what: `${id} says ${stated}, and ${found}` };
}
