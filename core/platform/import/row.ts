/**
 * A row of an imported file. `text` is its JSON text; absent in a CSV. `is_mapped`: a mapping read the cells, so they are not those of an
 * export of this service.
 */
export type ImportRow = { readonly value: unknown; readonly text?: string | undefined; readonly is_mapped?: boolean };

/** The reason why a row was rejected (docs/rules/imports.md, "Refused rows"). */
export type RowFault = { readonly field: string; readonly code: string; readonly message: string };
