/** Lists the fields that an entry of the audit log has changed. */
export type FieldChange = { readonly field: string; readonly before: unknown; readonly after: unknown };
type State = Record<string, unknown> | null | undefined;

/** Fields that change with every write and say nothing to a reader. */
const TECHNICAL = new Set(['updated_at', 'updated_by', 'version', 'created_by', 'tenant_id', 'environment_id']);

/** Fields whose value differs. A record that was created or deleted shows those that have a value. */
export function listChanges(before: State, after: State): FieldChange[] {
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  return fields
    .filter((field) => !TECHNICAL.has(field))
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }))
    .filter((change) => JSON.stringify(change.before) !== JSON.stringify(change.after));
}

export function formatValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
