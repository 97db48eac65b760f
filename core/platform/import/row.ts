/** A row of an imported file. */

/** `value` is the content of the row; `text` is its JSON text, only in a JSON file. */
export type ImportRow = { readonly value: unknown; readonly text?: string | undefined };

/** The reason why a row was rejected (docs/rules/imports.md, "The report"). */
export type RowFault = { readonly field: string; readonly code: string; readonly message: string };
