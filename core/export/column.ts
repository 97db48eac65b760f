/** The columns of an export: a name, what kind of value stands in it, and where that comes from (docs/rules/exports.md, "The columns"). */

/**
 * `text` is written by people or producers, `word` by us: an id, a word of a list, a currency. `decimal` is decimal text, `instant`
 * microseconds since 1970.
 */
export type CellKind = 'text' | 'word' | 'decimal' | 'integer' | 'instant';

/** A text of a text, word or decimal; a number of an integer or an instant; null is an empty cell, and not 0. */
export type ExportCell = string | number | null;

export type ColumnHead = { readonly name: string; readonly kind: CellKind };

export type ExportColumn<Row> = ColumnHead & { toCell(row: Row): ExportCell };

/** Each column in its place, written as a line: `text('event_id', (event) => event.id)`. */
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
