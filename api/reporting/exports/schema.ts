/** Parameters of an export on demand. */
import { z } from 'zod';
import { EXPORT_KINDS } from '../../../actions/reporting/exports/kinds.ts';
import { orDefault, toEnumValues } from '../../../core/foundation/record.ts';
import { compression, exportFormat, instantFormat } from '../../../core/platform/export/record.ts';
import { textList } from '../../http/list.ts';
import { instantUs } from '../../metering/usage/query-fields.ts';
import { YES_OR_NO } from '../usage/export-query.ts';

export const exportParams = z.object({
  entity_type: z
    .enum(toEnumValues(EXPORT_KINDS))
    .meta({ description: 'Type of the exported records.', example: 'events' }),
});

export const ExportFileQuery = z.object({
  start_time: instantUs.meta({
    description:
      'Earliest instant of the records, inclusive. Required, except for customers and subscriptions, which are exported as a whole: there it is refused.',
    example: '2026-03-01T00:00:00Z',
  }),
  end_time: instantUs.meta({
    description: 'Exclusive end of the records. Default: now. Refused for customers and subscriptions.',
  }),
  format: orDefault(exportFormat, 'CSV').meta({ description: 'Format of the file: CSV or PARQUET. Default: CSV.' }),
  compression: orDefault(compression, 'none').meta({
    description:
      'Compression of the file itself: gzip or none. The header Accept-Encoding controls compression of the transfer only. Default: none.',
  }),
  bom: YES_OR_NO.optional().meta({
    description:
      'True to begin a CSV with a byte order mark, by which Excel recognizes UTF-8; refused for other formats. Default: true for browsers only.',
  }),
  instant_format: orDefault(instantFormat, 'rfc3339').meta({
    description:
      'Format of instants in a CSV: rfc3339, or spreadsheet (`2026-03-01 10:00:00` in UTC, read as a date). Default: rfc3339. `spreadsheet` is refused for PARQUET.',
  }),
  customer_metadata: textList
    .optional()
    .meta({ description: 'Metadata keys of the customers; each becomes a column.', example: ['region'] }),
  wallet_metadata: textList
    .optional()
    .meta({ description: 'Metadata keys of the wallets, for exports of credits only; each becomes a column.' }),
});
export type ExportFileQuery = z.output<typeof ExportFileQuery>;
