/** Finalizes a draft after a request (docs/rules/invoices.md, "Invoices computed later"). */
import { FINALIZE_TASK, tryFinalization } from '../../actions/lifecycle/invoices/finalize-later.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { QueuedWork } from '../job.ts';
import { type InvoiceWorkOptions, invoiceWork } from './compute-invoice.ts';

export function finalizeInvoiceWork(stores: Stores, options: InvoiceWorkOptions): QueuedWork {
  return invoiceWork(stores, { name: FINALIZE_TASK, perform: tryFinalization }, options);
}
