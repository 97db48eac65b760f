/** Records that the search finds, and the address of the page of each. */
import { api, dataFrom } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';

export type SearchHit = components['schemas']['SearchItem'];
export type HitKind = SearchHit['kind'];
/** A record as the list of recent ones stores it. */
export type RecordRef = Pick<SearchHit, 'kind' | 'id' | 'title' | 'subtitle' | 'customer_id'>;

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

export type HitGroup = { readonly kind: ShownKind; readonly hits: readonly SearchHit[] };

/** Groups hits by kind. The kind of the best hit comes first, the others follow in their order. */
export function groupHits(hits: readonly SearchHit[]): HitGroup[] {
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

/** The path of a record. A price, a payment and a credit note name the record that they belong to. */
export async function findRecordPath(record: RecordRef): Promise<string> {
  const path = toRecordPath(record) ?? (await findOwnerPath(record));
  return path ?? (record.customer_id === null ? 'plans' : `customers/${encodeURIComponent(record.customer_id)}`);
}

async function findOwnerPath({ kind, id }: RecordRef): Promise<string | null> {
  const params = { path: { id } };
  switch (kind) {
    case 'price': {
      const price = await dataFrom(api.GET('/prices/{id}', { params }));
      return price.entity_type === 'PLAN' ? `plans/${price.entity_id}/prices/${id}` : null;
    }
    case 'payment': {
      const payment = await dataFrom(api.GET('/payments/{id}', { params }));
      return payment.destination_type === 'INVOICE' ? `invoices/${payment.destination_id}` : null;
    }
    case 'credit_note': {
      const note = await dataFrom(api.GET('/creditnotes/{id}', { params }));
      return `invoices/${note.invoice_id}`;
    }
    case 'feature': {
      const feature = await dataFrom(api.GET('/features/{id}', { params }));
      return feature.meter_id ? `meters/${feature.meter_id}` : null;
    }
    default:
      return null;
  }
}
