/** Deletes entries of the audit log after their retention period (docs/rules/records.md, "The audit log"). */

import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeAuditEntries } from '../../storage/models/operations/audit-entry.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeAuditLogJob(
  { postgres }: Pick<Stores, 'postgres'>,
  { every_seconds, retention_days }: { every_seconds: number; retention_days: number },
): ScheduledJob {
  return {
    name: 'purge-audit-log',
    every_seconds,
    async run(now) {
      const purged = await purgeAuditEntries(postgres, new Date(now.getTime() - retention_days * DAY_MS));
      return { done: { purged }, waiting: [], failed: [] };
    },
  };
}
