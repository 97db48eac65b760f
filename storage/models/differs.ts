/** Whether a record is another one with a change (docs/rules/records.md, "Changing a record"). */
import { raw } from 'objection';

/** The database compares: it knows that 1.50 is 1.5, and that the order of keys is none. */
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
