/** Deletes files of imports that failed a week ago and were not resumed. */

import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeImportFiles } from '../../storage/models/operations/import-files.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeImportFilesJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-import-files',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeImportFiles(postgres, now) }, waiting: [], failed: [] }),
  };
}
