/** Performs an export, within six hours per try (docs/rules/exports.md, "Whole or not there"). */
import { z } from 'zod';
import type { ExportSettings } from '../../actions/exports/destinations.ts';
import { tryExport } from '../../actions/exports/perform-export.ts';
import { EXPORT_TASK } from '../../actions/exports/scheduled-tasks.ts';
import { clockFor } from '../../storage/environment-clock.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Work } from '../job.ts';

const TIMEOUT_MS = 6 * 3_600_000;

const Payload = z.object({ tenant_id: z.string(), environment_id: z.string(), workflow_id: z.string() });

export function exportWork(stores: Stores, { clock, settings }: { clock: () => Date; settings: ExportSettings }): Work {
  return {
    name: EXPORT_TASK,
    lane: 'files',
    async run(payload, { attempt, is_last, signal: ending }) {
      const place = Payload.parse(payload);
      const at = await clockFor(stores.postgres, place, clock);
      const signal = AbortSignal.any([ending, AbortSignal.timeout(TIMEOUT_MS)]);
      return tryExport(stores, place, { attempt, is_last, clock: at, signal, timeout_ms: TIMEOUT_MS, settings });
    },
  };
}
