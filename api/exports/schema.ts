/** What an export on demand is asked with. */
import { z } from 'zod';
import { EXPORT_KINDS } from '../../actions/exports/kinds.ts';
import { compression, exportFormat } from '../../core/export/record.ts';
import { orDefault, toEnumValues } from '../../core/record.ts';
import { YES_OR_NO } from '../events/export-query.ts';
import { instantUs, requiredInstantUs } from '../events/usage-query-fields.ts';
import { textList } from '../http/list.ts';

export const exportParams = z.object({
  entity_type: z
    .enum(toEnumValues(EXPORT_KINDS))
    .meta({ description: 'What the records of the file are.', example: 'events' }),
});

export const ExportFileQuery = z.object({
  start_time: requiredInstantUs.meta({
    description: 'Records at this instant or later.',
    example: '2026-03-01T00:00:00Z',
  }),
  end_time: instantUs.meta({ description: 'Records before this instant; until now when absent.' }),
  format: orDefault(exportFormat, 'CSV').meta({ description: 'CSV or PARQUET; CSV when absent.' }),
  compression: orDefault(compression, 'none').meta({
    description:
      'With gzip the file itself is packed. Whether it is packed on the way alone is said by the header Accept-Encoding.',
  }),
  bom: YES_OR_NO.optional().meta({
    description: 'Begins a CSV with a byte order mark, by which Excel knows UTF-8; by default for browsers alone.',
  }),
  customer_metadata: textList
    .optional()
    .meta({ description: 'Keys of the customers’ metadata, each a column of its own.', example: ['region'] }),
  wallet_metadata: textList.optional().meta({ description: 'Keys of the wallets’ metadata, of credits alone.' }),
});
export type ExportFileQuery = z.output<typeof ExportFileQuery>;
