/** Ids of records whose changes are tracked (sql/postgres/0170-record-changes.sql), in rows that a computation reads. */

const TRACKED_ID = /^(?:cust|subs|plan|price|meter|feat|addon|coupon|group|env)_[0-9A-Z]{26}$/;
const TRACKED_IDS = /(?:cust|subs|plan|price|meter|feat|addon|coupon|group|env)_[0-9A-Z]{26}/g;
/** Columns that contain the tenant's id or user-supplied text. */
const NO_RECORDS = new Set(['tenant_id', 'external_id', 'external_customer_id', 'lookup_key']);

export function isRecordId(column: string, value: string): boolean {
  return (column === 'id' || column.endsWith('_id')) && !NO_RECORDS.has(column) && TRACKED_ID.test(value);
}

/** Lists the record ids in a text, such as the key of a cached answer. */
export function listRecordIds(text: string): readonly string[] {
  return text.match(TRACKED_IDS) ?? [];
}

/**
 * Id under which all corrections of an environment's events are tracked (sql/postgres, 0251). Only cached draft plans use it: a cached
 * answer watches the usage that it reads.
 */
const CORRECTIONS_ID = /^env_[0-9A-Z]{26}\/corrections$/;

export function isCorrectionsId(column: string, value: string): boolean {
  return column === 'id' && CORRECTIONS_ID.test(value);
}
