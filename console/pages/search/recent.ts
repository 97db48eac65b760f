/**
 * Records that were opened lately from the search. They live as long as the tab, so that no name of a customer stays on the machine, and
 * belong to a session and its environment: `scope` names both.
 */
import { addRecent, type RecordRef } from './hits.ts';

export function loadRecent(scope: string): RecordRef[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(toKey(scope)) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isRecordRef) : [];
  } catch {
    return [];
  }
}

export function saveRecent(scope: string, record: RecordRef): void {
  const { kind, id, title, subtitle, customer_id } = record;
  const next = addRecent(loadRecent(scope), { kind, id, title, subtitle, customer_id });
  sessionStorage.setItem(toKey(scope), JSON.stringify(next));
}

function toKey(scope: string): string {
  return `farthing.recent.${scope}`;
}

function isRecordRef(value: unknown): value is RecordRef {
  const record = value as Partial<RecordRef> | null;
  return typeof record?.kind === 'string' && typeof record.id === 'string' && typeof record.title === 'string';
}
