/**
 * Builds one job per kind of due work (actions/schedule/due-work.ts). Environments with a test clock are excluded: the
 * advance of their clock runs it.
 */
import { listDueWork } from '../../actions/schedule/due-work.ts';
import type { Config } from '../../config.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ScheduledJob } from '../job.ts';

type DueTiming = Pick<Config, 'BILLING_INTERVAL_SECONDS' | 'EXPORT_DELAY_SECONDS' | 'FINALIZATION_DELAY_SECONDS'>;

export function createDueJobs(stores: Stores, config: DueTiming): ScheduledJob[] {
  return listDueWork(config).map((kind) => ({
    name: kind.name,
    every_seconds: kind.every_seconds ?? config.BILLING_INTERVAL_SECONDS,
    run: (now, onDone) => kind.run(stores, { now, ...(onDone ? { onDone } : {}) }),
  }));
}
