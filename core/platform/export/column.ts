/** Columns of an export: name, kind of value and source (docs/rules/exports.md, "The columns"). */

/**
 * `text` is written by people or producers. `word` is written by this service: an id, an enum value, a currency. `decimal` is decimal text.
 * `instant` is microseconds since 1970.
 */
export type CellKind = 'text' | 'word' | 'decimal' | 'integer' | 'instant';

/** A string for text, word and decimal; a number for integer and instant. Null is an empty cell, not 0. */
export type ExportCell = string | number | null;

export type ColumnHead = { readonly name: string; readonly kind: CellKind };

export type ExportColumn<Row> = ColumnHead & { toCell(row: Row): ExportCell };

/** Builders that define a column in one line: `text('event_id', (event) => event.id)`. */
export function defineExportColumns<Row>() {
  const kind =
    <Value extends ExportCell>(kind: CellKind) =>
    (name: string, of: (row: Row) => Value): ExportColumn<Row> => ({ name, kind, toCell: of });
  return {
    text: kind<string | null>('text'),
    word: kind<string | null>('word'),
    decimal: kind<string | null>('decimal'),
    integer: kind<number>('integer'),
    instant: kind<number | null>('instant'),
  };
}
