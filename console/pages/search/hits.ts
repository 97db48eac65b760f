/** Records that the search finds, in groups, and the paths of their pages. */
import type { components } from '../../client/openapi.d.ts';

export type FoundItem = components['schemas']['SearchItem'];
export type HitKind = FoundItem['kind'];
/** A record as the list of recent ones stores it. */
export type RecordRef = Pick<FoundItem, 'kind' | 'id' | 'title' | 'subtitle' | 'customer_id'>;

/** Kinds that have a page, or lead to the page of another record. They are shown in this order. */
export const HIT_KINDS = [
  'customer',
  'invoice',
  'subscription',
  'plan',
  'price',
  'meter',
  'feature',
  'wallet',
  'payment',
  'credit_note',
  'event',
] as const satisfies readonly HitKind[];
export type ShownKind = (typeof HIT_KINDS)[number];

export type HitGroup = { readonly kind: ShownKind; readonly hits: readonly FoundItem[] };

/** Groups hits by kind. The kind of the best hit comes first, the others follow in their order. */
export function groupHits(hits: readonly FoundItem[]): HitGroup[] {
  const best = hits[0]?.kind;
  const kinds = [...HIT_KINDS].sort((left, right) => Number(right === best) - Number(left === best));
  return kinds
    .map((kind) => ({ kind, hits: hits.filter((hit) => hit.kind === kind) }))
    .filter((group) => group.hits.length > 0);
}

const FOLDERS: Partial<Record<HitKind, string>> = {
  customer: 'customers',
  invoice: 'invoices',
  subscription: 'subscriptions',
  plan: 'plans',
  meter: 'meters',
  wallet: 'wallets',
};

/** The path of a record below its environment; null if another record must be read first. */
export function toRecordPath({ kind, id }: Pick<RecordRef, 'kind' | 'id'>): string | null {
  if (kind === 'event') return `events?event=${encodeURIComponent(id)}`;
  const folder = FOLDERS[kind];
  return folder ? `${folder}/${encodeURIComponent(id)}` : null;
}

const RECENT_MAX = 6;

/** The newest record stands first, each of them once. */
export function addRecent(records: readonly RecordRef[], record: RecordRef): RecordRef[] {
  return [record, ...records.filter(({ id, kind }) => id !== record.id || kind !== record.kind)].slice(0, RECENT_MAX);
}
