/** Reads the rows of a file as its bytes arrive: a file of any size needs the memory of a few rows (docs/rules/imports.md, "Files"). */
import { setImmediate as othersFirst } from 'node:timers/promises';
import { CsvError, parse } from 'csv-parse';
import { FarthingError, invalid } from '../../../core/foundation/error.ts';
import { withField } from '../../../core/foundation/field-at-fault.ts';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import { parseColumns, toCellValues } from '../../../core/platform/import/csv-columns.ts';
import { JsonRows, ROW_LENGTH_MAX } from '../../../core/platform/import/json-rows.ts';
import { compileMapping } from '../../../core/platform/import/mapping/mapped-row.ts';
import { DELIMITERS, type FileEncoding, type UsedMapping } from '../../../core/platform/import/mapping/record.ts';
import type { ImportRow, RowFault } from '../../../core/platform/import/row.ts';
import { decodeText } from './encoding.ts';

/**
 * A row, or its fault. A fault that prevents reading the following rows is thrown instead. `number` is the row of a spreadsheet in a CSV
 * file, where the header is row 1; in JSON it counts from 1.
 */
export type FileRow = (ImportRow | { readonly fault: RowFault }) & { readonly number: number };

/** Computes the approximate length of the row in characters. */
export function computeRowLength(row: FileRow): number {
  if ('fault' in row) return 0;
  return row.text?.length ?? computeCellsLength(row.value as Record<string, string | Record<string, string>>);
}

function computeCellsLength(cells: Readonly<Record<string, string | Record<string, string>>>): number {
  let length = 0;
  for (const [name, cell] of Object.entries(cells))
    length += name.length + (typeof cell === 'string' ? cell.length : computeCellsLength(cell));
  return length;
}

type ImportFile = {
  readonly file_type: 'CSV' | 'JSON';
  readonly encoding: FileEncoding;
  /** Names of the known columns. */
  readonly known: readonly string[];
  readonly mapping: UsedMapping | null;
  readonly pieces: AsyncIterable<Buffer>;
};

/** Reads the rows. An error that ends the file is thrown after the readable rows. */
export function readRows({ file_type, encoding, pieces, known, mapping }: ImportFile): AsyncGenerator<FileRow> {
  if (file_type === 'JSON') return readJsonRows({ encoding, pieces });
  const records = readCsvFile({ encoding, pieces, mapping });
  const compile = (header: readonly string[]) =>
    mapping ? compileMapping(mapping, header) : compilePlain(header, known);
  return readCsvRows(records, { is_mapped: mapping !== null, compile });
}

/** First column, or first key of an object, in the file of refused rows. An import ignores it. */
export const REFUSED_REASON = 'refused_reason';
const REASON_FIRST = new RegExp(`^\\{\\s*"${REFUSED_REASON}"\\s*:\\s*"(?:[^"\\\\]|\\\\.)*"\\s*(?:,|(?=\\}))`);

/** Reads the records of a CSV file as they are, without the column of earlier reasons. The first is the header. */
export async function* readCsvFile(
  file: Pick<ImportFile, 'encoding' | 'pieces' | 'mapping'>,
): AsyncGenerator<CsvRecord> {
  let hasReasons: boolean | undefined;
  for await (const record of readCsvRecords(decodeText(splitPieces(file.pieces), file.encoding), file.mapping)) {
    hasReasons ??= record.cells[0] === REFUSED_REASON;
    yield hasReasons ? { ...record, cells: record.cells.slice(1) } : record;
  }
}

const PART_BYTES = 16_384;

/** Splits chunks into parts, and yields to other work between them: a chunk may contain some hundred thousand rows. */
async function* splitPieces(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces)
    for (let from = 0; from < piece.length; from += PART_BYTES) {
      await othersFirst();
      yield piece.subarray(from, from + PART_BYTES);
    }
}

type CellsReader = (cells: readonly string[]) => unknown;

function compilePlain(header: readonly string[], known: readonly string[]): CellsReader {
  const columns = parseColumns(header, known);
  return (cells) => toCellValues(columns, cells);
}

type CsvReading = { readonly is_mapped: boolean; compile(header: readonly string[]): CellsReader };

async function* readCsvRows(
  records: AsyncGenerator<CsvRecord>,
  { is_mapped, compile }: CsvReading,
): AsyncGenerator<FileRow> {
  let read: CellsReader | undefined;
  let width = 0;
  let last = 0;
  try {
    for await (const { cells, number } of records) {
      if (read === undefined) {
        read = compile(cells);
        width = cells.length;
      } else yield toRow(read, { cells, number, width, is_mapped });
      last = number;
    }
  } catch (error) {
    throw error instanceof CsvError ? toCsvError(error, read === undefined ? 'header' : `row ${last + 1}`) : error;
  }
}

/** Cells of a record, and its row in a spreadsheet, which counts the header and empty lines. */
type CsvRecord = { readonly cells: readonly string[]; readonly number: number };

/**
 * Reads the records of a CSV text. If the parser's stream fails, it drops the records that were not read from it yet.
 * So the records are collected as they are parsed, and the error is thrown after them.
 */
async function* readCsvRecords(texts: AsyncGenerator<string>, mapping: UsedMapping | null): AsyncGenerator<CsvRecord> {
  let found: CsvRecord[] = [];
  let records = 0;
  const failed: Error[] = [];
  const parser = parse({
    delimiter: DELIMITERS[mapping?.delimiter ?? 'COMMA'],
    relax_column_count: true,
    skip_empty_lines: true,
    // Any of the three line endings is accepted after each row. By default the parser would use that of the first row
    // for all rows.
    record_delimiter: ['\r\n', '\n', '\r'],
    max_record_size: ROW_LENGTH_MAX,
    on_record: (record: string[]) => {
      found.push({ cells: record, number: ++records + parser.info.empty_lines });
      // The parser allows any length for its first record, so each record is presented as the first. For other records
      // of a differing length the parser would create an error object, at seven times the cost.
      Object.assign(parser.info, { records: 0 });
    },
  });
  parser.on('error', (error) => failed.push(error)).resume();
  const isClosed = new Promise((resolve) => parser.once('close', resolve));
  try {
    for await (const text of texts) {
      await Promise.race([new Promise((resolve) => parser.write(text, resolve)), isClosed]);
      const records = found;
      found = [];
      yield* records;
      if (failed.length > 0) break;
    }
    parser.end();
    await isClosed;
    yield* found;
    if (failed[0]) throw failed[0];
  } finally {
    parser.destroy();
  }
}

type ReadRecord = CsvRecord & { readonly width: number; readonly is_mapped: boolean };

function toRow(read: CellsReader, { cells, number, width, is_mapped }: ReadRecord): FileRow {
  if (cells.length !== width)
    return { fault: buildRowFault(`has ${cells.length} cells, and the header ${width}`), number };
  try {
    return { value: read(cells), number, is_mapped };
  } catch (error) {
    return { fault: toRowFault(error), number };
  }
}

/** Converts an error to a fault of the row. A temporary error is no fault of the row, so it is thrown. */
export function toRowFault(error: unknown, row?: unknown): RowFault {
  if (!(error instanceof FarthingError) || error.http_status_code >= 500) throw error;
  const { code, message, details } = withField(error, row);
  return { field: details?.field ?? 'row', code, message };
}

function toCsvError({ code }: CsvError, where: string): FarthingError {
  return invalid(where, CSV_FAULTS[code] ?? `cannot be read as CSV (${code})`);
}

const CSV_FAULTS: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_INVALID_CLOSING_QUOTE: 'something stands behind a closing quote',
  INVALID_OPENING_QUOTE: 'a quote stands inside of a cell that does not begin with one',
  CSV_MAX_RECORD_SIZE: `is longer than ${ROW_LENGTH_MAX} characters`,
};

/** Row of a JSON file as its text, and its number from 1. */
type JsonRecord = { readonly text: string; readonly number: number };

/** Reads the rows of a JSON file as they are, without the key of earlier reasons. */
export async function* readJsonFile(file: Pick<ImportFile, 'encoding' | 'pieces'>): AsyncGenerator<JsonRecord> {
  const rows = new JsonRows();
  let number = 0;
  const read = (text: string) => ({ text: text.replace(REASON_FIRST, '{'), number: ++number });
  for await (const text of decodeText(splitPieces(file.pieces), file.encoding))
    for (const row of rows.take(text)) yield read(row);
  for (const row of rows.end()) yield read(row);
}

async function* readJsonRows(file: Pick<ImportFile, 'encoding' | 'pieces'>): AsyncGenerator<FileRow> {
  for await (const record of readJsonFile(file)) yield parseRow(record);
}

function parseRow({ text, number }: JsonRecord): FileRow {
  try {
    return { value: parseJson(text), text, number };
  } catch {
    return { fault: buildRowFault('must be valid JSON'), number };
  }
}

function buildRowFault(why: string): RowFault {
  return { field: 'row', code: 'validation_error', message: `row: ${why}` };
}
