/** Reads the first rows of a file as an import would, and writes nothing (docs/rules/imports.md). */
import { createHash } from 'node:crypto';
import { FarthingError } from '../../../core/foundation/error.ts';
import { parseJson } from '../../../core/foundation/json/parse.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { FileEncoding, UsedMapping } from '../../../core/platform/import/mapping/record.ts';
import { parseRecordRow } from '../../../core/platform/import/record-row.ts';
import type { RowFault } from '../../../core/platform/import/row.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { findSameFile } from '../../../storage/models/reporting/task.ts';
import { chooseEncoding } from './encoding.ts';
import { listImportColumns } from './import-columns.ts';
import type { NewImport } from './import-later.ts';
import { computeRowLength, type FileRow, readRows, toRowFault } from './rows.ts';
import { parseEventRows } from './take-events.ts';
import { RECORDS } from './take-records.ts';

const ROWS_MAX = 1_000;
/** Maximum total length of these rows in characters: a mapping may name one cell many times. */
const LENGTH_MAX = 33_554_432;
const SHOWN_MAX = 10;

type ImportPreviewInput = Pick<NewImport, 'entity_type' | 'file_type'> & {
  readonly mapping: UsedMapping | null;
  readonly bytes: Buffer;
};

type ImportPreview = {
  readonly encoding: FileEncoding;
  readonly sha256: string;
  readonly same_file_as: string | null;
  readonly rows_read: number;
  readonly is_whole_file: boolean;
  readonly accepted_rows: number;
  readonly refused_rows: number;
  readonly accepted: readonly { readonly row: number; readonly record: unknown }[];
  readonly refused: readonly ({ readonly row: number } & RowFault)[];
  readonly error_summary: string | null;
};

type PreviewedRow = { readonly row: number } & ({ readonly record: unknown } | { readonly fault: RowFault });

export async function previewImport(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { bytes, ...input }: ImportPreviewInput,
): Promise<ImportPreview> {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const encoding = chooseEncoding(bytes, { file_type: input.file_type, required: input.mapping?.encoding ?? null });
  const { rows, isWhole, error_summary } = await readFirstRows({ ...input, encoding, bytes });
  const previewed = await previewRows(stores, scope, { entity_type: input.entity_type, rows });
  const accepted = previewed.flatMap((one) => ('fault' in one ? [] : [one]));
  const refused = previewed.flatMap((one) => ('fault' in one ? [{ row: one.row, ...one.fault }] : []));
  return {
    encoding,
    sha256,
    same_file_as: await findSameFile(stores.postgres, scope, { id: '', entity_type: input.entity_type, sha256 }),
    rows_read: rows.length,
    is_whole_file: isWhole,
    accepted_rows: accepted.length,
    refused_rows: refused.length,
    accepted: accepted.slice(0, SHOWN_MAX),
    refused: refused.slice(0, SHOWN_MAX),
    error_summary,
  };
}

/** An error that ends the file is a result: an import would import the rows before it. */
async function readFirstRows({ bytes, entity_type, ...file }: ImportPreviewInput & { encoding: FileEncoding }) {
  const rows: FileRow[] = [];
  let length = 0;
  async function* pieces() {
    yield bytes;
  }
  try {
    for await (const row of readRows({ ...file, known: listImportColumns(entity_type), pieces: pieces() })) {
      if (rows.length === ROWS_MAX || length > LENGTH_MAX) return { rows, isWhole: false, error_summary: null };
      rows.push(row);
      length += computeRowLength(row);
    }
  } catch (error) {
    if (!(error instanceof FarthingError) || error.http_status_code >= 500) throw error;
    return { rows, isWhole: true, error_summary: error.message };
  }
  return { rows, isWhole: true, error_summary: rows.length === 0 ? 'file: holds no records' : null };
}

type FirstRows = Pick<ImportPreviewInput, 'entity_type'> & { readonly rows: readonly FileRow[] };

async function previewRows(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { entity_type, rows }: FirstRows,
): Promise<readonly PreviewedRow[]> {
  if (entity_type !== 'EVENTS') return rows.map((row) => previewRecord(entity_type, row));
  const read = await parseEventRows({ postgres }, scope, rows);
  return read.map((row, index) => {
    const { number } = rows[index]!;
    return 'fault' in row ? { row: number, fault: row.fault } : { row: number, record: parseJson(row.text) };
  });
}

function previewRecord(entity_type: keyof typeof RECORDS, row: FileRow): PreviewedRow {
  const { number } = row;
  if ('fault' in row) return { row: number, fault: row.fault };
  try {
    return { row: number, record: parseRecordRow(RECORDS[entity_type].shape, row) };
  } catch (error) {
    return { row: number, fault: toRowFault(error, row.value) };
  }
}
