/**
 * Imports a file, as a request has asked for (docs/rules/imports.md): within two hours per try, and a try goes on where the one before
 * stopped.
 */
import { z } from 'zod';
import { IMPORT_TASK } from '../../actions/imports/import-later.ts';
import { type ImportSettings, tryImport } from '../../actions/imports/run-import.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Work } from '../job.ts';

const TIMEOUT_MS = 2 * 60 * 60_000;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

export function importRecordsWork(
  stores: Stores,
  { clock, settings }: { clock: () => Date; settings: ImportSettings },
): Work {
  return {
    name: IMPORT_TASK,
    lane: 'imports',
    run(payload, { attempt, is_last, signal: ending }) {
      const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)]);
      const how = { attempt, is_last, clock, signal, timeout_ms: TIMEOUT_MS, settings };
      return tryImport(stores, Payload.parse(payload), how);
    },
  };
}
