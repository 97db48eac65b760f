/** Builds the SQL condition that a change alters a record (docs/rules/records.md, "Changing a record"). */
import { raw } from 'objection';

/**
 * Builds the condition that a record differs from values. The database compares them: 1.50 equals 1.5, and the order of JSON keys does not
 * matter.
 */
export function buildDiffersCondition(
  { jsonAttributes }: { jsonAttributes: string[] | null | undefined },
  values: readonly [string, unknown][],
) {
  const sql = values.map(() => '?? is distinct from ?').join(' or ');
  const bound = values.flatMap(([column, value]) => [
    column,
    jsonAttributes?.includes(column) && value !== null ? JSON.stringify(value) : value,
  ]);
  return raw(`(${sql})`, bound as never);
}
