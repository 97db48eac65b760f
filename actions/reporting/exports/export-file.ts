/** Builds an export as a stream of file bytes. The number of records, the size and the SHA-256 are available after the last byte. */
import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { ColumnHead, ExportCell, ExportColumn } from '../../../core/platform/export/column.ts';
import { formatCsvHead, formatCsvLine } from '../../../core/platform/export/csv.ts';
import type { Compression, ExportFormat, InstantFormat } from '../../../core/platform/export/record.ts';
import { writeCsvFile } from '../../../integrations/export-files/csv.ts';
import { writeParquetFile } from '../../../integrations/export-files/parquet.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CutRecords } from './cut-records.ts';
import type { ExportInput, ExportKind } from './export-kind.ts';

export type BuildExportFileInput = ExportInput & {
  readonly format: ExportFormat;
  readonly compression: Compression;
  /** Whether a CSV file begins with a byte order mark, by which Excel recognizes UTF-8. */
  readonly bom?: boolean;
  /** Format of the instants of a CSV file. */
  readonly instants?: InstantFormat;
};

type ExportFile = {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Valid after all bytes were read. */
  total(): { records: number; size_bytes: number; sha256: string };
};

type Batches = AsyncIterable<readonly ExportCell[][]>;
type FileWriter = (
  columns: readonly ColumnHead[],
  batches: Batches,
  options: Pick<BuildExportFileInput, 'instants'>,
) => AsyncIterable<Uint8Array>;

const WRITERS: Readonly<Record<ExportFormat, FileWriter>> = { CSV: writeCsvFile, PARQUET: writeParquetFile };

export function buildExportFile(
  stores: Stores,
  scope: Scope,
  kind: ExportKind,
  input: BuildExportFileInput,
): ExportFile {
  return buildFile(kind.heads(input.fields), kind.cells(stores, scope, input), input);
}

/**
 * Builds the records as several files of at most `bytes_max` before compression, each with a head and at least one record. The next file
 * begins after all bytes of the one before it were read.
 */
export async function* buildExportFiles(
  stores: Stores,
  scope: Scope,
  kind: ExportKind,
  { bytes_max, ...input }: BuildExportFileInput & { bytes_max: number },
): AsyncGenerator<ExportFile> {
  const heads = kind.heads(input.fields);
  const cut = new CutRecords(kind.cells(stores, scope, input), { bytes_max, ...LENGTHS[input.format](heads) });
  try {
    do yield buildFile(heads, cut.next(), input);
    while (!cut.isOver);
  } finally {
    await cut.end();
  }
}

/** Writes records of any kind as CSV, in chunks. */
export function writeCsv<Row>(
  columns: readonly ExportColumn<Row>[],
  records: AsyncIterable<Row>,
  { bom = false, instants }: { bom?: boolean; instants?: InstantFormat } = {},
): AsyncGenerator<Uint8Array> {
  async function* lines(): AsyncGenerator<readonly ExportCell[][]> {
    for await (const record of records) yield [columns.map(({ toCell: of }) => of(record))];
  }
  const written = writeCsvFile(columns, lines(), { instants });
  return bom ? addByteOrderMark(written) : written;
}

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

type FormatLengths = { readonly head: number; of(cells: readonly ExportCell[]): number };

/** Sizes in bytes: exact for CSV with a byte order mark; for Parquet the size of the cells before encoding. */
const LENGTHS: Readonly<Record<ExportFormat, (heads: readonly ColumnHead[]) => FormatLengths>> = {
  CSV: (heads) => ({
    head: BYTE_ORDER_MARK.length + Buffer.byteLength(formatCsvHead(heads)),
    of: (cells) => Buffer.byteLength(formatCsvLine(heads, cells)),
  }),
  PARQUET: () => ({
    head: 0,
    of: (cells) => cells.reduce<number>((sum, cell) => sum + VALUE_BYTES + textBytes(cell), 0),
  }),
};
const VALUE_BYTES = 8;

function textBytes(cell: ExportCell): number {
  return typeof cell === 'string' ? Buffer.byteLength(cell) : 0;
}

function buildFile(
  heads: readonly ColumnHead[],
  batches: Batches,
  input: Pick<BuildExportFileInput, 'format' | 'compression' | 'bom' | 'instants'>,
): ExportFile {
  const digest = createHash('sha256');
  let [records, size_bytes] = [0, 0];
  async function* counted(batches: Batches): AsyncGenerator<readonly ExportCell[][]> {
    for await (const batch of batches) {
      records += batch.length;
      yield batch;
    }
  }
  async function* digested(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      size_bytes += piece.length;
      digest.update(piece);
      yield piece;
    }
  }
  const written = WRITERS[input.format](heads, counted(batches), input);
  const plain = input.bom ? addByteOrderMark(written) : written;
  const bytes = digested(input.compression === 'gzip' ? gzip(plain) : plain);
  return { bytes, total: () => ({ records, size_bytes, sha256: digest.digest('hex') }) };
}

async function* addByteOrderMark(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield BYTE_ORDER_MARK;
  yield* pieces;
}

/** Compression level: the lowest that still saves half as much as the default level; it takes a third of the time. */
const LEVEL = 3;

function gzip(pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  // The reader of the stream gets the error, so the callback ignores it.
  return pipeline(Readable.from(pieces), createGzip({ level: LEVEL }), () => undefined);
}
