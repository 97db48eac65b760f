/** Defines a kind of export: its columns, the source of its records, and the customers or wallets that they belong to. */
import type { PermissionEntity } from '../../../core/foundation/access/role.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import type { ColumnHead, ExportCell, ExportColumn } from '../../../core/platform/export/column.ts';
import { type MetadataEntity, type MetadataField, toColumnName } from '../../../core/platform/export/metadata-field.ts';
import { TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { CutParts } from '../../../storage/models/reporting/export-cuts.ts';
import { type ExportSubjects, loadSubjectMetadata } from './subjects.ts';

export type ExportInput = {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly now: Date;
  readonly fields: readonly MetadataField[];
  readonly signal: AbortSignal;
  /** Content of a scheduled file. Without it the export contains the records of the range. */
  readonly cut?: CutParts | null | undefined;
};

/** Keys by which a record names its customer or wallet. */
type ExportSubjectKeys<Row> = { readonly [Which in keyof ExportSubjects]?: (row: Row) => string | null };

/** Lists the permissions that the export requires, including those for the entities of its metadata columns. */
export function listRequiredReads(
  kind: Pick<ExportKind, 'reads'>,
  fields: readonly MetadataField[],
): readonly PermissionEntity[] {
  return [...new Set<PermissionEntity>([...kind.reads, ...fields.map(({ entity_type }) => entity_type)])];
}

type ExportKindParts<Row> = {
  /** True if a file has all records, whatever their age, and no range. */
  readonly is_whole?: boolean;
  readonly reads: readonly PermissionEntity[];
  readonly columns: readonly ExportColumn<Row>[];
  readonly keys: ExportSubjectKeys<Row>;
  /** Yields the records in batches; each batch is in memory as a whole. */
  rows(stores: Stores, scope: Scope, input: ExportInput): AsyncGenerator<readonly Row[]>;
};

export type ExportKind = {
  readonly is_whole: boolean;
  readonly reads: readonly PermissionEntity[];
  readonly columns: readonly ColumnHead[];
  readonly about: readonly MetadataEntity[];
  heads(fields: readonly MetadataField[]): readonly ColumnHead[];
  /** Yields the cells of batches of records, in the order of the heads. */
  cells(stores: Stores, scope: Scope, input: ExportInput): AsyncGenerator<readonly ExportCell[][]>;
};

export function defineExportKind<Row>({
  is_whole = false,
  reads,
  columns,
  keys,
  rows,
}: ExportKindParts<Row>): ExportKind {
  const about: MetadataEntity[] = keys.wallet ? ['customer', 'wallet'] : ['customer'];
  return {
    is_whole,
    reads,
    columns,
    about,
    heads: (fields) => [...columns, ...fields.map((field) => ({ name: toColumnName(field), kind: 'text' as const }))],
    async *cells(stores, scope, input) {
      const slicer = new TimeSlicer(scope.tenant_id);
      for await (const some of rows(stores, scope, input)) {
        const metadataCells = await loadMetadataCells(stores, scope, { some, keys, fields: input.fields });
        yield some.map((row) => [...columns.map((column) => column.toCell(row)), ...metadataCells(row)]);
        if (slicer.isOver(some.length)) await slicer.next(input.signal);
      }
    },
  };
}

const NONE: readonly ExportCell[] = [];

async function loadMetadataCells<Row>(
  stores: Stores,
  scope: Scope,
  { some, keys, fields }: { some: readonly Row[]; keys: ExportSubjectKeys<Row>; fields: readonly MetadataField[] },
): Promise<(row: Row) => readonly ExportCell[]> {
  if (fields.length === 0) return () => NONE;
  const metadata = await loadSubjectMetadata(stores, scope, {
    some,
    keys,
    wanted: fields.map(({ entity_type }) => entity_type),
  });
  return (row) =>
    fields.map(({ entity_type, field_key }) => {
      const pairs = metadata(entity_type, row);
      return pairs && Object.hasOwn(pairs, field_key) ? pairs[field_key]! : null;
    });
}
