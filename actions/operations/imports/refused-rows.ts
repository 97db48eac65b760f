/** Writes the refused rows of a CSV import as a file that can be corrected and imported again (docs/rules/imports.md, "Refused rows"). */
import { invalid, notAllowed, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { escapeFormula, quoteCell } from '../../../core/platform/export/csv.ts';
import { DELIMITERS } from '../../../core/platform/import/mapping/record.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { readFaults } from '../../../storage/models/operations/import-faults.ts';
import { findStoredFile, readChunks, type StoredImportFile } from '../../../storage/models/operations/import-files.ts';
import type { TaskModel } from '../../../storage/models/reporting/task.ts';
import { REFUSED_REASON, readCsvFile } from './rows.ts';

const PIECE_LENGTH = 65_536;
const BYTE_ORDER_MARK = '\uFEFF';
const LINE_END = '\r\n';

/** Throws before the first byte if there is no such file. */
export async function openRefusedRows(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  task: TaskModel,
): Promise<AsyncGenerator<Buffer>> {
  if (task.task_type !== 'IMPORT') throw notFound('import', task.id);
  if (task.file_type !== 'CSV') throw notAllowed('the refused rows of a JSON file are in its report alone');
  const file = await findStoredFile(scope, task.id, postgres);
  if (!file && task.failed_records > 0) throw invalid('file', 'is no longer stored: the report has the reasons');
  return file ? writeRefusedRows(file, postgres) : writeEmptyFile();
}

async function* writeEmptyFile(): AsyncGenerator<Buffer> {
  yield Buffer.from(BYTE_ORDER_MARK + REFUSED_REASON + LINE_END);
}

async function* writeRefusedRows(file: StoredImportFile, postgres: Database): AsyncGenerator<Buffer> {
  const delimiter = DELIMITERS[file.mapping?.delimiter ?? 'COMMA'];
  const format = (reason: string, cells: readonly string[]) =>
    [escapeFormula(reason), ...cells].map(quoteCell).join(delimiter) + LINE_END;
  const records = readCsvFile({ ...file, pieces: readChunks(file, postgres) });
  const header = await records.next();
  if (header.done) return;
  let text = BYTE_ORDER_MARK + format(REFUSED_REASON, header.value.cells);
  let record = await records.next();
  for await (const { row_number, message } of readFaults(file, file.task_id, postgres)) {
    while (!record.done && record.value.number < row_number) record = await records.next();
    if (record.done) break;
    if (record.value.number === row_number) text += format(message, record.value.cells);
    if (text.length < PIECE_LENGTH) continue;
    yield Buffer.from(text);
    text = '';
  }
  await records.return(undefined);
  yield Buffer.from(text);
}
