/** Columns of exported events (docs/rules/exports.md, "Events"). */
import type { Microseconds } from '../../foundation/time/instant.ts';
import { defineExportColumns } from './column.ts';

/** Row as the store returns it. A tuple, because ten million events would repeat every field name ten million times. */
export type ExportedEvent = readonly [
  event_id: string,
  event_name: string,
  external_customer_id: string,
  customer_id: string,
  timestamp_us: Microseconds,
  received_at_us: Microseconds,
  source: string,
  /** Properties as JSON text, as they were sent. */
  properties: string,
];

const { text, instant } = defineExportColumns<ExportedEvent>();

export const EVENT_COLUMNS = [
  text('event_id', ([event_id]) => event_id),
  text('event_name', (event) => event[1]),
  text('external_customer_id', (event) => event[2]),
  text('customer_id', (event) => event[3]),
  instant('timestamp', (event) => event[4]),
  instant('received_at', (event) => event[5]),
  text('source', (event) => event[6]),
  text('properties', (event) => event[7]),
];
