/** Writes a CSV file as a stream of pieces. A file without records has its header line. */
import type { ColumnHead, ExportCell } from '../../core/platform/export/column.ts';
import { formatCsvHead, formatCsvLine } from '../../core/platform/export/csv.ts';
import type { InstantFormat } from '../../core/platform/export/record.ts';

const PIECE_LENGTH = 65_536;

export async function* writeCsvFile(
  columns: readonly ColumnHead[],
  batches: AsyncIterable<readonly ExportCell[][]>,
  { instants }: { instants?: InstantFormat | undefined } = {},
): AsyncGenerator<Uint8Array> {
  let text = formatCsvHead(columns);
  for await (const batch of batches) {
    for (const cells of batch) {
      text += formatCsvLine(columns, cells, instants);
      if (text.length < PIECE_LENGTH) continue;
      yield Buffer.from(text);
      text = '';
    }
  }
  yield Buffer.from(text);
}
