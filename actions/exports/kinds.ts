/** What can be exported: one line for each. */
import type { TaskEntityType } from '../../core/task/record.ts';
import type { ExportKind } from './export-kind.ts';
import { usageAnalyticsExport } from './exported-analytics.ts';
import { eventsExport } from './exported-events.ts';

export const EXPORT_KINDS = {
  events: eventsExport,
  usage_analytics: usageAnalyticsExport,
} as const satisfies Partial<Record<Lowercase<TaskEntityType>, ExportKind>>;
