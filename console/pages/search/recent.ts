/** Records that were opened lately from the search. They live as long as the tab, so that no name of a customer stays on the machine. */
import type { RecordRef } from './hits.ts';

const RECENT_MAX = 6;

export function loadRecent(environment_id: string): RecordRef[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(toKey(environment_id)) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isRecordRef) : [];
  } catch {
    return [];
  }
}

export function saveRecent(environment_id: string, record: RecordRef): void {
  const { kind, id, title, subtitle, customer_id } = record;
  const next = addRecent(loadRecent(environment_id), { kind, id, title, subtitle, customer_id });
  sessionStorage.setItem(toKey(environment_id), JSON.stringify(next));
}

/** The newest record stands first, each of them once. */
export function addRecent(records: readonly RecordRef[], record: RecordRef): RecordRef[] {
  return [record, ...records.filter(({ id, kind }) => id !== record.id || kind !== record.kind)].slice(0, RECENT_MAX);
}

function toKey(environment_id: string): string {
  return `farthing.recent.${environment_id}`;
}

function isRecordRef(value: unknown): value is RecordRef {
  const record = value as Partial<RecordRef> | null;
  return typeof record?.kind === 'string' && typeof record.id === 'string' && typeof record.title === 'string';
}
