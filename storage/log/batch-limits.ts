/** Limits of a batch of the embedded log, whether it is read from the table or from memory. */
export const BATCH_RECORDS_MAX = 2_000;
export const BATCH_BYTES_MAX = 64 * 1024 * 1024;
