/** Writes the revenue rows of ClickHouse for invoices that became final or void, and for changes of recurring revenue. */
import { streamRevenue } from '../../actions/reporting/revenue/stream-revenue.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { raiseRevenueVersion } from '../../storage/reporting/revenue/outbox.ts';
import { findGreatestVersion } from '../../storage/reporting/revenue/rows.ts';
import type { ScheduledJob } from '../job.ts';

export function streamRevenueJob(stores: Stores, every_seconds: number): ScheduledJob {
  // The first run of a process raises the row version: if Postgres was restored to an earlier moment, new rows would
  // otherwise count as older than those in ClickHouse.
  let isAhead = false;
  return {
    name: 'stream-revenue',
    every_seconds,
    run: async (_now, onDone) => {
      if (!isAhead) await raiseRevenueVersion(stores.postgres, await findGreatestVersion(stores.clickhouse));
      isAhead = true;
      const streamed = await streamRevenue(stores, (so_far) => onDone?.({ told: so_far }));
      return { done: { told: streamed }, waiting: [], failed: [] };
    },
  };
}
