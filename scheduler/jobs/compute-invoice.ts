/** Computes an invoice after a request, within ten minutes per attempt (docs/rules/invoices.md, "Invoices computed later"). */
import { z } from 'zod';
import { COMPUTE_TASK, tryComputation } from '../../actions/invoicing/invoices/compute-later.ts';
import { MINUTE_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { loadNow } from '../../storage/models/schedule/environment-clock.ts';
import type { QueuedWork } from '../job.ts';

const TIMEOUT_MS = 10 * MINUTE_MS;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

export type InvoiceWorkOptions = { clock: () => Date; timeout_ms?: number };

export function computeInvoiceWork(stores: Stores, options: InvoiceWorkOptions): QueuedWork {
  return invoiceWork(stores, { name: COMPUTE_TASK, perform: tryComputation }, options);
}

/** Builds the worker of a workflow that a request enqueued for one invoice. */
export function invoiceWork(
  stores: Stores,
  { name, perform }: { name: string; perform: typeof tryComputation },
  { clock, timeout_ms = TIMEOUT_MS }: InvoiceWorkOptions,
): QueuedWork {
  return {
    name,
    async run(payload, { attempt, is_last, signal: ending }) {
      const place = Payload.parse(payload);
      const at = await loadNow(stores.postgres, place, clock);
      const signal = AbortSignal.any([ending, AbortSignal.timeout(timeout_ms)]);
      return perform(stores, place, { attempt, is_last, clock: at, signal, timeout_ms });
    },
  };
}
