/**
 * Imports a file after a request (docs/rules/imports.md), within two hours per attempt. An attempt resumes where the
 * previous one stopped or yielded its slot. Downloads from a URL have a lane of their own, so that an uploaded file
 * does not wait for them.
 */
import { z } from 'zod';
import { FETCHED_IMPORT_JOB, IMPORT_JOB } from '../../actions/operations/imports/import-later.ts';
import { type ImportSettings, tryImport } from '../../actions/operations/imports/run-import.ts';
import { HOUR_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { QueuedWork, WorkAttempt } from '../job.ts';

const TIMEOUT_MS = 2 * HOUR_MS;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

export function createImportWork(
  stores: Stores,
  { clock, settings }: { clock: () => Date; settings: ImportSettings },
): QueuedWork[] {
  type ImportAttempt = Omit<WorkAttempt, 'mayGoOn'> & Partial<WorkAttempt>;
  const run = (payload: unknown, { attempt, is_last, signal: ending, mayGoOn }: ImportAttempt) => {
    const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)]);
    const how = { attempt, is_last, clock, signal, timeout_ms: TIMEOUT_MS, settings, mayGoOn };
    return tryImport(stores, Payload.parse(payload), how);
  };
  return [
    { name: IMPORT_JOB.task, lane: 'imports', in_order: IMPORT_JOB.in_order, rereads_input: true, run },
    {
      name: FETCHED_IMPORT_JOB.task,
      lane: 'fetched-imports',
      run: (payload, { mayGoOn: _, ...attempt }) => run(payload, attempt),
    },
  ];
}
