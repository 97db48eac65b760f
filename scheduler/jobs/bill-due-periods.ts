/** Invoices every period that is over and moves its subscription on. */
import { billDuePeriods } from '../../actions/billing/bill-period.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';

export function billDuePeriodsJob(stores: Stores, every_seconds: number): Job {
  return {
    name: 'bill-due-periods',
    every_seconds,
    async run(now) {
      const { billed, waiting, failed } = await billDuePeriods(stores, now);
      return { done: { billed }, waiting, failed };
    },
  };
}
