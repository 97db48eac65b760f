/**
 * Performs an export (docs/rules/exports.md, "Whole or not there"). It first runs in the common lane for one time
 * slice. An unfinished export restarts in the lane of slow exports, within six hours per attempt ("What a store may
 * cost").
 */
import { z } from 'zod';
import type { ExportSettings } from '../../actions/reporting/exports/destinations.ts';
import { tryExport } from '../../actions/reporting/exports/perform-export.ts';
import { EXPORT_JOB, SLOW_EXPORT_JOB } from '../../actions/reporting/exports/scheduled-tasks.ts';
import { HOUR_MS, MINUTE_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { loadNow } from '../../storage/models/schedule/environment-clock.ts';
import type { QueuedWork, WorkAttempt } from '../job.ts';

export const EXPORT_SLICE_MS = 2 * MINUTE_MS;
const TIMEOUT_MS = 6 * HOUR_MS;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

type ExportWorkOptions = { clock: () => Date; settings: ExportSettings; slice_ms: number };

export function createExportWork(stores: Stores, { clock, settings, slice_ms }: ExportWorkOptions): QueuedWork[] {
  const perform = async (payload: unknown, { signal: ending, ...attempt }: WorkAttempt, slice: AbortSignal | null) => {
    const place = Payload.parse(payload);
    const at = await loadNow(stores.postgres, place, clock);
    const timeout_ms = slice ? slice_ms : TIMEOUT_MS;
    const signal = AbortSignal.any([ending, slice ?? AbortSignal.timeout(TIMEOUT_MS)]);
    return tryExport(stores, place, { ...attempt, clock: at, signal, timeout_ms, settings, slice });
  };
  return [
    {
      name: EXPORT_JOB.task,
      lane: 'files',
      run: (payload, attempt) => perform(payload, attempt, AbortSignal.timeout(slice_ms)),
    },
    { name: SLOW_EXPORT_JOB.task, lane: 'slow-files', run: (payload, attempt) => perform(payload, attempt, null) },
  ];
}
