/** Parameters of an export: entity type, format and compression (docs/rules/exports.md). */
import { anyCase } from '../../foundation/record.ts';

export const EXPORT_ENTITY_TYPES = [
  'events',
  'invoice',
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

/** File name extensions, without the dot. */
export const EXTENSIONS: Readonly<Record<ExportFormat, string>> = { CSV: 'csv', PARQUET: 'parquet' };
export const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  CSV: 'text/csv; charset=utf-8',
  PARQUET: 'application/vnd.apache.parquet',
};
