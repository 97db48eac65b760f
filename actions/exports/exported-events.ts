/** The events of a time as they count now, by their timestamps (docs/rules/exports.md, "Events"). */
import { EVENT_COLUMNS, type ExportedEvent } from '../../core/export/events.ts';
import { eventsOfTime } from '../../storage/events/exported-events.ts';
import { exportKind } from './export-kind.ts';

export const eventsExport = exportKind<ExportedEvent>({
  reads: ['event'],
  columns: EVENT_COLUMNS,
  keys: { external_customer_id: ([, , external_customer_id]) => external_customer_id },
  rows: ({ clickhouse }, { tenant_id, environment_id }, { start_us, end_us, signal, cut }) =>
    eventsOfTime(clickhouse, { tenant_id, environment_id, start_us, end_us, signal, cut }),
});
