/** An export as the bytes of a file, made as they are taken, with what they come to in the end. */
import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { ColumnHead, ExportCell, ExportColumn } from '../../core/export/column.ts';
import { formatCsvHead, formatCsvLine } from '../../core/export/csv.ts';
import type { Compression, ExportFormat } from '../../core/export/record.ts';
import type { Scope } from '../../core/scope.ts';
import { csvFile } from '../../integrations/export-files/csv.ts';
import { parquetFile } from '../../integrations/export-files/parquet.ts';
import type { Stores } from '../../storage/stores.ts';
import { CutRecords } from './cut-records.ts';
import type { ExportAsked, ExportKind } from './export-kind.ts';

export type FileAsked = ExportAsked & {
  readonly format: ExportFormat;
  readonly compression: Compression;
  /** Of CSV: whether it begins with the mark by which Excel knows UTF-8. */
  readonly bom?: boolean;
};

export type ExportFile = {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Once all bytes were taken. */
  total(): { records: number; size_bytes: number; sha256: string };
};

type Batches = AsyncIterable<readonly ExportCell[][]>;
type FileWriter = (columns: readonly ColumnHead[], batches: Batches) => AsyncIterable<Uint8Array>;

const WRITERS: Readonly<Record<ExportFormat, FileWriter>> = { CSV: csvFile, PARQUET: parquetFile };

export function exportFile(stores: Stores, scope: Scope, kind: ExportKind, asked: FileAsked): ExportFile {
  return fileOf(kind.heads(asked.fields), kind.cells(stores, scope, asked), asked);
}

/** The same records in files that are no longer than so many bytes before they are packed: each with a head, and at least one record. The next begins when all bytes of the one before it were taken. */
export async function* exportFiles(
  stores: Stores,
  scope: Scope,
  kind: ExportKind,
  { bytes_max, ...asked }: FileAsked & { bytes_max: number },
): AsyncGenerator<ExportFile> {
  const heads = kind.heads(asked.fields);
  const cut = new CutRecords(kind.cells(stores, scope, asked), { bytes_max, ...LENGTHS[asked.format](heads) });
  try {
    do yield fileOf(heads, cut.next(), asked);
    while (!cut.isOver);
  } finally {
    await cut.end();
  }
}

/** Records of any kind as a CSV, in pieces of some size. */
export function csvOf<Row>(
  columns: readonly ExportColumn<Row>[],
  records: AsyncIterable<Row>,
  { bom = false }: { bom?: boolean } = {},
): AsyncGenerator<Uint8Array> {
  async function* lines(): AsyncGenerator<readonly ExportCell[][]> {
    for await (const record of records) yield [columns.map(({ toCell: of }) => of(record))];
  }
  const written = csvFile(columns, lines());
  return bom ? marked(written) : written;
}

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

type Lengths = { readonly head: number; of(cells: readonly ExportCell[]): number };

/** Exactly, of CSV with a mark; of Parquet what its cells come to before they are encoded. */
const LENGTHS: Readonly<Record<ExportFormat, (heads: readonly ColumnHead[]) => Lengths>> = {
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

function fileOf(
  heads: readonly ColumnHead[],
  batches: Batches,
  asked: Pick<FileAsked, 'format' | 'compression' | 'bom'>,
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
  const written = WRITERS[asked.format](heads, counted(batches));
  const plain = asked.bom ? marked(written) : written;
  const bytes = digested(asked.compression === 'gzip' ? gzipped(plain) : plain);
  return { bytes, total: () => ({ records, size_bytes, sha256: digest.digest('hex') }) };
}

async function* marked(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield BYTE_ORDER_MARK;
  yield* pieces;
}

/** The least that is still half of what the usual level saves takes a third of its time. */
const LEVEL = 3;

function gzipped(pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  // What fails is thrown to whoever reads the end.
  return pipeline(Readable.from(pieces), createGzip({ level: LEVEL }), () => undefined);
}
