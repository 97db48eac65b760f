/** A row of a file that is imported. */

/** `value` is what it states; `text` the JSON text, of a file in JSON. */
export type ImportRow = { readonly value: unknown; readonly text?: string | undefined };

/** Why a row was refused (docs/rules/imports.md, "The report"). */
export type RowFault = { readonly field: string; readonly code: string; readonly message: string };
