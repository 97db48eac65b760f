/** Deletes the last values of cumulative series that sent nothing for long (docs/decisions/0032-cumulative-metrics.md). */

import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeSeries } from '../../storage/progress/otlp-series.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeSeriesJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-series',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeSeries(postgres, now) }, waiting: [], failed: [] }),
  };
}
