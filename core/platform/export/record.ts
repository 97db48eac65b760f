/** Parameters of an export: entity type, format and compression (docs/rules/exports.md). */
import { anyCase } from '../../foundation/record.ts';

export const EXPORT_ENTITY_TYPES = [
  'events',
  'invoice',
  'invoice_lines',
  'payments',
  'credit_notes',
  'customers',
  'subscriptions',
  'credit_topups',
  'credit_usage',
  'usage_analytics',
  'focus',
] as const;
export type ExportEntityType = (typeof EXPORT_ENTITY_TYPES)[number];

const EXPORT_FORMATS = ['CSV', 'PARQUET'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
export const exportFormat = anyCase(EXPORT_FORMATS);

const COMPRESSIONS = ['none', 'gzip'] as const;
export type Compression = (typeof COMPRESSIONS)[number];
export const compression = anyCase(COMPRESSIONS);

/** `spreadsheet` is `2026-03-01 10:00:00` in UTC, which spreadsheets read as a date. */
const INSTANT_FORMATS = ['rfc3339', 'spreadsheet'] as const;
export type InstantFormat = (typeof INSTANT_FORMATS)[number];
export const instantFormat = anyCase(INSTANT_FORMATS);

/** File name extensions, without the dot. */
export const EXTENSIONS: Readonly<Record<ExportFormat, string>> = { CSV: 'csv', PARQUET: 'parquet' };
export const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  CSV: 'text/csv; charset=utf-8',
  PARQUET: 'application/vnd.apache.parquet',
};
