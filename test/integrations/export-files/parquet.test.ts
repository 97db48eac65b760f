/** docs/rules/exports.md, "Parquet": a row group ends by its rows or its length, so memory is bounded. */
import { expect } from 'chai';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import type { ColumnHead, ExportCell } from '../../../core/platform/export/column.ts';
import { writeParquetFile } from '../../../integrations/export-files/parquet.ts';

const MEBI = 1_048_576;
const COLUMNS: ColumnHead[] = [
  { name: 'id', kind: 'integer' },
  { name: 'properties', kind: 'text' },
];

describe('a file of Parquet', () => {
  /** Returns the file, and the number of rows that were consumed before each of its pieces. */
  async function written(rows: number, { length, at_once }: { length: number; at_once: number }) {
    let taken = 0;
    async function* batches(): AsyncGenerator<ExportCell[][]> {
      for (let from = 0; from < rows; from += at_once) {
        const count = Math.min(at_once, rows - from);
        taken += count;
        yield Array.from({ length: count }, (_, at) => [from + at, `${from + at} `.padEnd(length, 'x')]);
      }
    }
    const pieces: Uint8Array[] = [];
    const held: number[] = [];
    for await (const piece of writeParquetFile(COLUMNS, batches())) {
      pieces.push(piece);
      held.push(taken);
      taken = 0;
    }
    const file = Buffer.concat(pieces);
    const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.length) as ArrayBuffer;
    const groups = parquetMetadata(bytes).row_groups.map(({ num_rows }) => Number(num_rows));
    return { bytes, groups, held };
  }

  it('ends a group with 16 MiB of texts, however few rows they are', async () => {
    const { bytes, groups, held } = await written(100, { length: MEBI, at_once: 1 });
    expect(groups).to.deep.equal([16, 16, 16, 16, 16, 16, 4]);
    expect(Math.max(...held)).to.equal(16);
    const rows = await parquetReadObjects({ file: bytes });
    expect(rows.map(({ id }) => Number(id))).to.deep.equal(Array.from({ length: 100 }, (_, at) => at));
    for (const { id, properties } of rows) expect(properties === `${id} `.padEnd(MEBI, 'x')).to.equal(true);
  });

  it('ends it inside of what came at once', async () => {
    const { groups } = await written(40, { length: MEBI, at_once: 40 });
    expect(groups).to.deep.equal([16, 16, 8]);
  });

  it('ends it with 20,000 rows of short ones', async () => {
    const { groups } = await written(45_000, { length: 20, at_once: 1_000 });
    expect(groups).to.deep.equal([20_000, 20_000, 5_000]);
  });
});
