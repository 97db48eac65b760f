/**
 * Finalizes drafts that have rested for the finalization delay since they were computed
 * (docs/rules/invoices.md, "From draft to final").
 */
import { finalizeDueInvoices } from '../../actions/invoices/finalize-due-invoices.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';

export type FinalizationTiming = { readonly every_seconds: number; readonly delay_seconds: number };

export function finalizeDueInvoicesJob(stores: Stores, { every_seconds, delay_seconds }: FinalizationTiming): Job {
  return {
    name: 'finalize-due-invoices',
    every_seconds,
    async run(now) {
      const { finalized, skipped, waiting, failed } = await finalizeDueInvoices(stores, { now, delay_seconds });
      return { done: { finalized, skipped }, waiting, failed };
    },
  };
}
