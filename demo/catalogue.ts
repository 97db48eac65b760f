/** The demo's catalogue and customers. Each record is created only if it is missing, so that the demo can run again. */
import type { Client, DemoFields } from './client.ts';

export type DemoTier = { readonly up_to: number | null; readonly unit_amount: string; readonly flat_amount?: string };

/** The terms of a price in one place: the service gets them, and the recomputation uses them. */
export type DemoTerms =
  | { readonly model: 'fee'; readonly amount: string }
  | { readonly model: 'slab' | 'volume'; readonly tiers: readonly DemoTier[] }
  | { readonly model: 'package'; readonly amount: string; readonly size: number };

export type DemoMeasure = 'calls' | 'context_tokens' | 'generated_tokens';
export type SoldItem = 'fee' | DemoMeasure;

export const TERMS: Readonly<Record<SoldItem, DemoTerms>> = {
  fee: { model: 'fee', amount: '20' },
  calls: {
    model: 'volume',
    tiers: [
      { up_to: 1_000, unit_amount: '0.002' },
      { up_to: 10_000, unit_amount: '0.0015' },
      { up_to: null, unit_amount: '0.001' },
    ],
  },
  context_tokens: {
    model: 'slab',
    tiers: [
      { up_to: 1_000_000, unit_amount: '0.000003' },
      { up_to: 10_000_000, unit_amount: '0.0000025', flat_amount: '0.5' },
      { up_to: null, unit_amount: '0.0000017' },
    ],
  },
  generated_tokens: { model: 'package', amount: '0.015', size: 1_000 },
};

export const NAMES: Readonly<Record<SoldItem, string>> = {
  fee: 'Platform fee',
  calls: 'Calls',
  context_tokens: 'Context tokens',
  generated_tokens: 'Generated tokens',
};

export const EVENT_NAME = 'demo.llm_call';
export const MEASURES: readonly DemoMeasure[] = ['calls', 'context_tokens', 'generated_tokens'];

export type Catalogue = {
  readonly plan_id: string;
  readonly meter_ids: Readonly<Record<DemoMeasure, string>>;
  /** The item that each price of the plan charges. */
  readonly sold_by_price: ReadonlyMap<string, SoldItem>;
};

type DemoRecord = { id: string };
type DemoPage<Item> = { items: Item[] };

export async function makeCatalogue(client: Client): Promise<Catalogue> {
  const meter_ids = {} as Record<DemoMeasure, string>;
  for (const measure of MEASURES) meter_ids[measure] = await ensureMeter(client, measure);
  const plans = await client.get<DemoPage<DemoRecord>>('/plans?lookup_key=demo-llm');
  const plan =
    plans.items[0] ?? (await client.post<DemoRecord>('/plans', { name: 'LLM demo', lookup_key: 'demo-llm' }));
  const sold_by_price = new Map<string, SoldItem>();
  for (const sold of Object.keys(TERMS) as SoldItem[]) {
    const price = await ensurePrice(client, sold, {
      plan_id: plan.id,
      meter_id: sold === 'fee' ? null : meter_ids[sold],
    });
    sold_by_price.set(price.id, sold);
  }
  return { plan_id: plan.id, meter_ids, sold_by_price };
}

/** The meter is found through the lookup key of its feature. */
async function ensureMeter(client: Client, measure: DemoMeasure): Promise<string> {
  const lookup_key = `demo-${measure}`;
  const features = await client.get<DemoPage<{ meter_id: string }>>(`/features?lookup_key=${lookup_key}`);
  if (features.items[0]) return features.items[0].meter_id;
  const aggregation = measure === 'calls' ? { type: 'COUNT' } : { type: 'SUM', field: measure };
  const meter = await client.post<DemoRecord>('/meters', {
    name: NAMES[measure],
    event_name: EVENT_NAME,
    aggregation,
    reset_usage: 'BILLING_PERIOD',
  });
  await client.post('/features', { name: NAMES[measure], lookup_key, type: 'metered', meter_id: meter.id });
  return meter.id;
}

async function ensurePrice(
  client: Client,
  sold: SoldItem,
  { plan_id, meter_id }: { plan_id: string; meter_id: string | null },
): Promise<DemoRecord> {
  const lookup_key = `demo-llm-${sold}`;
  const known = await client.find<DemoRecord>(`/prices/lookup/${lookup_key}`);
  if (known) return known;
  return client.post<DemoRecord>('/prices', {
    entity_type: 'PLAN',
    entity_id: plan_id,
    lookup_key,
    display_name: NAMES[sold],
    currency: 'usd',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    billing_cadence: 'RECURRING',
    price_unit_type: 'FIAT',
    // The data may be older than the plan.
    start_date: '1970-01-01T00:00:00Z',
    ...(meter_id === null
      ? { type: 'FIXED', invoice_cadence: 'ADVANCE' }
      : { type: 'USAGE', invoice_cadence: 'ARREAR', meter_id }),
    ...onTheWire(TERMS[sold]),
  });
}

function onTheWire(terms: DemoTerms): DemoFields {
  switch (terms.model) {
    case 'fee':
      return { billing_model: 'FLAT_FEE', amount: terms.amount };
    case 'package':
      return {
        billing_model: 'PACKAGE',
        amount: terms.amount,
        transform_quantity: { divide_by: terms.size, round: 'up' },
      };
    default:
      return { billing_model: 'TIERED', tier_mode: terms.model.toUpperCase(), tiers: terms.tiers };
  }
}

export async function makeCustomer(client: Client, external_id: string): Promise<void> {
  if (await client.find(`/customers/external/${external_id}`)) return;
  await client.post('/customers', { external_id, name: `Demo customer ${external_id}` });
}

type DemoSubscription = { readonly id: string; readonly start_date: string; readonly end_date: string };

/** Creates the subscription of this customer to the plan, for these months. */
export async function makeSubscription(
  client: Client,
  fields: { external_customer_id: string; plan_id: string; start_date: string; end_date: string },
): Promise<DemoSubscription> {
  const { external_customer_id, plan_id } = fields;
  const known = await client.post<DemoPage<DemoSubscription & { plan_id: string }>>('/subscriptions/search', {
    external_customer_id,
    subscription_status: ['active', 'cancelled'],
  });
  const same = known.items.find((subscription) => subscription.plan_id === plan_id);
  if (same) return same;
  return client.post<DemoSubscription>('/subscriptions', {
    ...fields,
    currency: 'usd',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    billing_cycle: 'anniversary',
  });
}
