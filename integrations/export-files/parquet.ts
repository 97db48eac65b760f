/**
 * Writes a Parquet file in row groups, of which only one is in memory. Decimals are texts, because no Parquet decimal
 * holds every digit of an amount. Instants are microseconds in UTC (docs/rules/exports.md, "Parquet").
 */
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { CellKind, ColumnHead, ExportCell } from '../../core/platform/export/column.ts';

/**
 * Limits of a row group; the one that is reached first ends it. A group takes its text length in memory, and twice as
 * many bytes until it is sent.
 */
const ROWS_PER_GROUP = 20_000;
const LENGTH_PER_GROUP = 16 * 1_048_576;

export async function* writeParquetFile(
  columns: readonly ColumnHead[],
  batches: AsyncIterable<readonly ExportCell[][]>,
): AsyncGenerator<Uint8Array> {
  const bytes = new ByteWriter();
  const writer = new ParquetWriter({ writer: bytes, schema: buildSchema(columns), createdBy: 'Farthing' });
  let group: ExportCell[][] = [];
  let length = 0;
  for await (const batch of batches)
    for (const cells of batch) {
      group.push(cells);
      length += computeTextLength(cells);
      if (group.length < ROWS_PER_GROUP && length < LENGTH_PER_GROUP) continue;
      await writeGroup(writer, columns, group);
      group = [];
      length = 0;
      yield takeBytes(bytes);
    }
  if (group.length > 0) await writeGroup(writer, columns, group);
  await writer.finish();
  yield takeBytes(bytes);
}

/** Computes the text length of a row; a cell without text takes eight bytes. */
function computeTextLength(cells: readonly ExportCell[]): number {
  let length = 0;
  for (const cell of cells) if (typeof cell === 'string') length += cell.length;
  return length;
}

async function writeGroup(
  writer: ParquetWriter,
  columns: readonly ColumnHead[],
  group: readonly ExportCell[][],
): Promise<void> {
  const columnData = columns.map(({ name, kind }, at) => ({
    name,
    data: group.map((cells) => toParquetValue(kind, cells[at]!)),
    nullable: true,
  }));
  await writer.write({ columnData, rowGroupSize: group.length });
}

/** Takes the bytes that were written since the previous call. */
function takeBytes(bytes: ByteWriter): Uint8Array {
  const piece = bytes.getBytes().slice();
  bytes.index = 0;
  return piece;
}

function toParquetValue(kind: CellKind, cell: ExportCell): string | bigint | null {
  if (cell === null) return null;
  return kind === 'instant' || kind === 'integer' ? BigInt(cell) : (cell as string);
}

function buildSchema(columns: readonly ColumnHead[]) {
  return [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, kind }) => ({ name, repetition_type: 'OPTIONAL' as const, ...TYPES[kind] })),
  ];
}

const STRING = { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } } as const;
const TYPES = {
  text: STRING,
  word: STRING,
  decimal: STRING,
  integer: { type: 'INT64' },
  instant: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
} as const;
