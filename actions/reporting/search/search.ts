/** One search over all kinds of records, with the names of the customers and plans that results belong to. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { hashIdentity } from '../../../core/metering/event/identity.ts';
import {
  type MatchedField,
  orderHits,
  parseSearchTerm,
  type RankedHit,
  type SearchKind,
} from '../../../core/platform/search/term.ts';
import { loadEventNames } from '../../../storage/events/uncounted-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { type SearchHit, searchRecords } from '../../../storage/reporting/search.ts';

type SearchQuery = { readonly text: string; readonly kinds: readonly SearchKind[]; readonly limit: number };

type SearchResult = {
  readonly kind: SearchKind;
  readonly id: string;
  readonly title: string;
  readonly subtitle: string | null;
  readonly status: string | null;
  readonly matched: MatchedField;
  readonly customer_id: string | null;
};

type EventHit = RankedHit & {
  readonly kind: 'event';
  readonly event_name: string;
  readonly external_customer_id: string;
};

/** `readable` are the kinds that the caller may read; names of other kinds are not in the results. */
export async function searchAll(
  stores: Stores,
  scope: Scope,
  { readable, text, kinds, limit }: SearchQuery & { readonly readable: ReadonlySet<SearchKind> },
): Promise<SearchResult[]> {
  const searched = kinds.filter((kind) => readable.has(kind));
  const records = searched.filter((kind) => kind !== 'event');
  const term = parseSearchTerm(text);
  const [found, events] = await Promise.all([
    searchRecords(scope, { term, kinds: records, limit }, stores.postgres),
    searched.includes('event') ? findEvent(stores, scope, text) : [],
  ]);
  const hits = orderHits<SearchHit | EventHit>([...found, ...events], limit);
  return showHits(stores, scope, { hits, readable });
}

async function findEvent({ clickhouse }: Stores, scope: Scope, event_id: string): Promise<EventHit[]> {
  const names = (await loadEventNames(clickhouse, scope, [hashIdentity({ ...scope, event_id })])).get(event_id);
  return names === undefined ? [] : [{ kind: 'event', id: event_id, rank: 0, ...names }];
}

type FoundHits = { readonly hits: readonly (SearchHit | EventHit)[]; readonly readable: ReadonlySet<SearchKind> };

async function showHits({ postgres }: Stores, scope: Scope, { hits, readable }: FoundHits): Promise<SearchResult[]> {
  const records = hits.flatMap((hit) => (hit.kind === 'event' ? [] : hit));
  const senders = hits.flatMap((hit) => (hit.kind === 'event' ? hit.external_customer_id : []));
  const customers = readable.has('customer')
    ? await CustomerModel.byId(scope, records.map(toOtherCustomer), postgres)
    : new Map<string, CustomerModel>();
  const plans = readable.has('plan')
    ? await PlanModel.byId(
        scope,
        records.map(({ plan_id }) => plan_id),
        postgres,
      )
    : new Map<string, PlanModel>();
  const known = senders.length > 0 ? await CustomerModel.publishedBy(scope, senders, postgres) : [];
  return hits.map((hit) =>
    hit.kind === 'event'
      ? showEvent(hit, known)
      : showRecord(hit, {
          customer: customers.get(hit.customer_id ?? '')?.name ?? null,
          plan: plans.get(hit.plan_id ?? '')?.name ?? null,
        }),
  );
}

/** A customer that is a hit itself is loaded already. */
function toOtherCustomer({ kind, customer_id }: SearchHit): string | null {
  return kind === 'customer' ? null : customer_id;
}

function showRecord(hit: SearchHit, names: { customer: string | null; plan: string | null }): SearchResult {
  const { kind, id, status, matched, customer_id } = hit;
  const title = hit.title || names.plan || id;
  const subtitle = hit.subtitle || names.customer;
  return { kind, id, title, subtitle: subtitle === title ? null : subtitle, status, matched, customer_id };
}

function showEvent(
  { id, event_name, external_customer_id }: EventHit,
  customers: readonly CustomerModel[],
): SearchResult {
  const customer = customers.find((one) => one.external_id === external_customer_id);
  const shown = { kind: 'event', id, title: event_name, subtitle: external_customer_id, status: null } as const;
  return { ...shown, matched: 'event_id', customer_id: customer?.id ?? null };
}
