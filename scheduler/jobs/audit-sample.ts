/** Audits some days of meters, taken at random, all the time: that rows equal the raw events is checked and not believed. */
import { auditSample, type Difference } from '../../actions/audit-usage.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';
import { auditMetrics } from '../metrics.ts';

const DAYS_PER_RUN = 2;
/** Where one row differs a million may: the log says the first, the metric counts all. */
const TOLD_MAX = 20;

export function auditSampleJob(stores: Stores, every_seconds: number): Job {
  return {
    name: 'audit-sample',
    every_seconds,
    async run() {
      const found: Difference[] = [];
      const options = { size: DAYS_PER_RUN, chance: Math.random };
      const { days, rows, differences } = await auditSample(stores, options, (difference) => {
        if (found.length < TOLD_MAX) found.push(difference);
      });
      auditMetrics.sampled({ days, rows, differences });
      const failed = found.map((difference) => ({ id: difference.meter_id, error: new Error(textOf(difference)) }));
      const more = differences - found.length;
      if (more > 0) failed.push({ id: 'all meters', error: new Error(`and ${more} more fields of usage rows differ`) });
      return { done: { days, rows, differences }, waiting: [], failed };
    },
  };
}

function textOf({ size, bucket_start_us, field, stored, expected }: Difference): string {
  const start = new Date(bucket_start_us / 1000).toISOString();
  return `the usage row ${size} ${start} differs in ${field}: ${stored} is stored, the raw events say ${expected}; run npm run audit -- --repair`;
}
