/** Makes the revenue rows of ClickHouse of what has become final, was voided, or recurs otherwise. */
import { streamRevenue } from '../../actions/revenue/stream-revenue.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';

export function streamRevenueJob(stores: Stores, every_seconds: number): Job {
  return {
    name: 'stream-revenue',
    every_seconds,
    run: async (_now, onDone) => {
      const told = await streamRevenue(stores, (so_far) => onDone?.({ told: so_far }));
      return { done: { told }, waiting: [], failed: [] };
    },
  };
}
