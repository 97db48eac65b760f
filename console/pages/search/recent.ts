/**
 * Records that were opened lately from the search. They live as long as the tab, so that no name of a customer stays on the machine, and
 * belong to a session and its environment: `scope` names both.
 */
import type { RecordRef } from './hits.ts';

const RECENT_MAX = 6;

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

/** The newest record stands first, each of them once. */
export function addRecent(records: readonly RecordRef[], record: RecordRef): RecordRef[] {
  return [record, ...records.filter(({ id, kind }) => id !== record.id || kind !== record.kind)].slice(0, RECENT_MAX);
}

function toKey(scope: string): string {
  return `farthing.recent.${scope}`;
}

function isRecordRef(value: unknown): value is RecordRef {
  const record = value as Partial<RecordRef> | null;
  return typeof record?.kind === 'string' && typeof record.id === 'string' && typeof record.title === 'string';
}
