/** A row of an imported file. `text` is its JSON text; absent in a CSV. */
export type ImportRow = { readonly value: unknown; readonly text?: string | undefined };

/** The reason why a row was rejected (docs/rules/imports.md, "The report"). */
export type RowFault = { readonly field: string; readonly code: string; readonly message: string };
