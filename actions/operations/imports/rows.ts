/** Reads the rows of a file as its bytes arrive: a file of any size needs the memory of a few rows (docs/rules/imports.md, "Files"). */
import { setImmediate as othersFirst } from 'node:timers/promises';
import { CsvError, parse } from 'csv-parse';
import { type FarthingError, invalid } from '../../../core/foundation/error.ts';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import { type ImportColumn, parseColumns, toCellValues } from '../../../core/platform/import/csv-columns.ts';
import { JsonRows, ROW_LENGTH_MAX } from '../../../core/platform/import/json-rows.ts';
import type { ImportRow, RowFault } from '../../../core/platform/import/row.ts';
import { decodeUtf8 } from './utf8.ts';

/** A row, or its fault. A fault that prevents reading the following rows is thrown instead. */
export type FileRow = ImportRow | { readonly fault: RowFault };

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
  /** Names of the known columns. */
  readonly known: readonly string[];
  readonly pieces: AsyncIterable<Buffer>;
};

/** Reads the rows. An error that ends the file is thrown after the readable rows. */
export function readRows({ file_type, known, pieces }: ImportFile): AsyncGenerator<FileRow> {
  const texts = decodeUtf8(splitPieces(pieces));
  return file_type === 'CSV' ? readCsvRows(texts, known) : readJsonRows(texts);
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

async function* readCsvRows(texts: AsyncGenerator<string>, known: readonly string[]): AsyncGenerator<FileRow> {
  let columns: ImportColumn[] | undefined;
  let rows = 0;
  try {
    for await (const cells of readCsvRecords(texts)) {
      if (columns === undefined) columns = parseColumns(cells, known);
      else {
        rows++;
        yield toRow(columns, cells);
      }
    }
  } catch (error) {
    throw error instanceof CsvError ? toCsvError(error, columns === undefined ? 'header' : `row ${rows + 1}`) : error;
  }
}

/**
 * Reads the records of a CSV text. If the parser's stream fails, it drops the records that were not read from it yet.
 * So the records are collected as they are parsed, and the error is thrown after them.
 */
async function* readCsvRecords(texts: AsyncGenerator<string>): AsyncGenerator<string[]> {
  let found: string[][] = [];
  const failed: Error[] = [];
  const parser = parse({
    relax_column_count: true,
    skip_empty_lines: true,
    // Any of the three line endings is accepted after each row. By default the parser would use that of the first row
    // for all rows.
    record_delimiter: ['\r\n', '\n', '\r'],
    max_record_size: ROW_LENGTH_MAX,
    on_record: (record: string[]) => {
      found.push(record);
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

function toRow(columns: readonly ImportColumn[], cells: readonly string[]): FileRow {
  if (cells.length === columns.length) return { value: toCellValues(columns, cells) };
  return { fault: buildRowFault(`has ${cells.length} cells, and the header ${columns.length}`) };
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

async function* readJsonRows(texts: AsyncGenerator<string>): AsyncGenerator<FileRow> {
  const rows = new JsonRows();
  for await (const text of texts) for (const row of rows.take(text)) yield parseRow(row);
  for (const row of rows.end()) yield parseRow(row);
}

function parseRow(text: string): FileRow {
  try {
    return { value: parseJson(text), text };
  } catch {
    return { fault: buildRowFault('must be valid JSON') };
  }
}

function buildRowFault(why: string): RowFault {
  return { field: 'row', code: 'validation_error', message: `row: ${why}` };
}
