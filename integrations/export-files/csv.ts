/** Writes a CSV file as a stream of pieces. A file without records has its header line. */
import type { ColumnHead, ExportCell } from '../../core/platform/export/column.ts';
import { formatCsvHead, formatCsvLine } from '../../core/platform/export/csv.ts';

const PIECE_LENGTH = 65_536;

export async function* writeCsvFile(
  columns: readonly ColumnHead[],
  batches: AsyncIterable<readonly ExportCell[][]>,
): AsyncGenerator<Uint8Array> {
  let text = formatCsvHead(columns);
  for await (const batch of batches) {
    for (const cells of batch) {
      text += formatCsvLine(columns, cells);
      if (text.length < PIECE_LENGTH) continue;
      yield Buffer.from(text);
      text = '';
    }
  }
  yield Buffer.from(text);
}
