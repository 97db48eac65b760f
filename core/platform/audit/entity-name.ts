/** Name of a changed record for people, from its state after the change, or before it if the record was deleted. */
import type { AuditEntry } from './record.ts';

/** Fields that name a record, the best first. A record has few of them. */
const NAME_FIELDS = [
  'name',
  'invoice_number',
  'credit_note_number',
  'display_name',
  'lookup_key',
  'external_id',
  'email',
  'key',
  'url',
] as const;

export function deriveEntityName({ before, after }: Pick<AuditEntry, 'before' | 'after'>): string | null {
  const state = after ?? before ?? {};
  const names = NAME_FIELDS.map((field) => state[field]);
  return names.find((name): name is string => typeof name === 'string' && name !== '') ?? null;
}
