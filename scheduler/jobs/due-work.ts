/**
 * Builds one job per kind of due work (actions/schedule/due-work.ts). Environments with a test clock are excluded: the
 * advance of their clock runs it.
 */
import { listDueWork } from '../../actions/schedule/due-work.ts';
import type { Config } from '../../config.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ScheduledJob } from '../job.ts';
import { createClock } from './send-webhooks.ts';

type DueTiming = Pick<Config, 'BILLING_INTERVAL_SECONDS' | 'EXPORT_DELAY_SECONDS' | 'FINALIZATION_DELAY_SECONDS'>;

/** Shortest time limit of a run. Beginning costs a query of all due records, so shorter runs would mostly query. */
const RUN_MS_MIN = 30_000;

/** Builds the jobs. The time limit of a run is the interval, so that the next run is due when it ends. */
export function createDueJobs(stores: Stores, config: DueTiming): ScheduledJob[] {
  return listDueWork(config).map((kind) => {
    const every_seconds = kind.every_seconds ?? config.BILLING_INTERVAL_SECONDS;
    const limit_ms = Math.max(every_seconds * 1_000, RUN_MS_MIN);
    return {
      name: kind.name,
      every_seconds,
      run(now, onDone) {
        const until = new Date(now.getTime() + limit_ms);
        return kind.run(stores, { now, clock: createClock(now), until, ...(onDone ? { onDone } : {}) });
      },
    };
  });
}
