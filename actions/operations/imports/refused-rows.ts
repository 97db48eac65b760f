/**
 * Writes the refused rows of an import as a file that can be corrected and imported again (docs/rules/imports.md,
 * "Refused rows"): CSV, or a JSON object per line.
 */
import { invalid, notFound } from '../../../core/foundation/error.ts';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { escapeFormula, quoteCell } from '../../../core/platform/export/csv.ts';
import { DELIMITERS } from '../../../core/platform/import/mapping/record.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { readFaults } from '../../../storage/models/operations/import-faults.ts';
import { findStoredFile, readChunks, type StoredImportFile } from '../../../storage/models/operations/import-files.ts';
import type { TaskModel } from '../../../storage/models/reporting/task.ts';
import { REFUSED_REASON, readCsvFile, readJsonFile } from './rows.ts';

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
  const file = await findStoredFile(scope, task.id, postgres);
  if (!file && task.failed_records > 0) throw invalid('file', 'is no longer stored: the report has the reasons');
  const isCsv = task.file_type === 'CSV';
  if (!file) return inPieces(isCsv ? [BYTE_ORDER_MARK + REFUSED_REASON + LINE_END] : []);
  return inPieces(isCsv ? writeRefusedCsv(file, postgres) : writeRefusedJson(file, postgres));
}

/** Joins texts into pieces that are worth a write. */
async function* inPieces(texts: AsyncIterable<string> | Iterable<string>): AsyncGenerator<Buffer> {
  let piece = '';
  for await (const text of texts) {
    piece += text;
    if (piece.length < PIECE_LENGTH) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  yield Buffer.from(piece);
}

async function* writeRefusedCsv(file: StoredImportFile, postgres: Database): AsyncGenerator<string> {
  const delimiter = DELIMITERS[file.mapping?.delimiter ?? 'COMMA'];
  const format = (reason: string, cells: readonly string[]) =>
    [escapeFormula(reason), ...cells].map(quoteCell).join(delimiter) + LINE_END;
  const records = readCsvFile({ ...file, pieces: readChunks(file, postgres) });
  const header = await records.next();
  if (header.done) return;
  yield BYTE_ORDER_MARK + format(REFUSED_REASON, header.value.cells);
  for await (const { record, reason } of findRefused(records, file, postgres)) yield format(reason, record.cells);
}

async function* writeRefusedJson(file: StoredImportFile, postgres: Database): AsyncGenerator<string> {
  const records = readJsonFile({ ...file, pieces: readChunks(file, postgres) });
  for await (const { record, reason } of findRefused(records, file, postgres))
    yield `${formatJson(reason, record.text)}\n`;
}

/** Adds the reason as the first key, so that the numbers keep their digits. Any other row is quoted, and refused until it is an object. */
function formatJson(reason: string, text: string): string {
  const first = JSON.stringify({ [REFUSED_REASON]: reason }).slice(0, -1);
  if (!isObject(text)) return `${first},"refused_row":${JSON.stringify(text)}}`;
  // Outside of texts, where JSON has no line end, a line end is a blank.
  const rest = text
    .trim()
    .slice(1)
    .replace(/[\r\n]+/g, ' ')
    .trimStart();
  return first + (rest.startsWith('}') ? '' : ',') + rest;
}

function isObject(text: string): boolean {
  try {
    const value = parseJson(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Finds the refused records; `records` and the stored faults are in the order of the file. */
async function* findRefused<FileRecord extends { readonly number: number }>(
  records: AsyncGenerator<FileRecord>,
  file: StoredImportFile,
  postgres: Database,
): AsyncGenerator<{ readonly record: FileRecord; readonly reason: string }> {
  let next = await records.next();
  for await (const { row_number, message } of readFaults(file, file.task_id, postgres)) {
    while (!next.done && next.value.number < row_number) next = await records.next();
    if (next.done) break;
    if (next.value.number === row_number) yield { record: next.value, reason: message };
  }
  await records.return(undefined);
}
