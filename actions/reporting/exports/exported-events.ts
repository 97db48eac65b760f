/** Exports the counted events of the range, by their timestamps (docs/rules/exports.md, "Events"). */
import { EVENT_COLUMNS, type ExportedEvent } from '../../../core/platform/export/events.ts';
import { streamExportedEvents } from '../../../storage/events/exported-events.ts';
import { nextOffsets, toOffsetsText } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import { defineExportKind } from './export-kind.ts';

export const eventsExport = defineExportKind<ExportedEvent>({
  reads: ['event'],
  columns: EVENT_COLUMNS,
  keys: { external_customer_id: ([, , external_customer_id]) => external_customer_id },
  async *rows({ clickhouse, postgres }, { tenant_id, environment_id }, { start_us, end_us, signal, cut }) {
    const marks = toOffsetsText(nextOffsets(await readProgress(postgres)));
    yield* streamExportedEvents(clickhouse, { tenant_id, environment_id, start_us, end_us, signal, cut, marks });
  },
});
