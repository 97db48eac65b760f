/** The customers of P9: their creation, the reads about them, and their usage. */
import { post, type Service } from './processes.ts';

const MONTHLY = { billing_period: 'MONTHLY', billing_period_count: 1 };

/** Creates one customer by the API and the others as copies of its rows, because only reads are measured. */
export async function makeCustomers(service: Service, customers: number): Promise<void> {
  const made = async (path: string, body: object) => (await service.post<{ id: string }>(path, body)).id;
  const aggregation = { type: 'SUM', field: 'n' };
  const meter_id = await made('/meters', { name: 'Calls', event_name: 'calls', aggregation });
  const plan_id = await made('/plans', { name: 'Pro' });
  const price = { entity_type: 'PLAN', entity_id: plan_id, currency: 'usd', billing_cadence: 'RECURRING', ...MONTHLY };
  const terms = { ...price, type: 'USAGE', invoice_cadence: 'ARREAR', price_unit_type: 'FIAT', meter_id };
  const tiers = [
    { up_to: 100, unit_amount: '0.05' },
    { up_to: null, unit_amount: '0.01' },
  ];
  await made('/prices', { ...terms, billing_model: 'TIERED', tier_mode: 'SLAB', tiers });
  const feature_id = await made('/features', { name: 'Calls', lookup_key: 'calls', type: 'metered', meter_id });
  const limit = { usage_limit: 50, usage_reset_period: 'MONTHLY' };
  await made('/entitlements', { plan_id, feature_id, feature_type: 'metered', ...limit });
  await made('/customers', { external_id: 'template', name: 'template' });
  const of = { external_customer_id: 'template', currency: 'usd' };
  await made('/subscriptions', { ...of, plan_id, ...MONTHLY });
  await made('/wallets', of);
  const copies = (table: string, fields: string) =>
    service.call({
      what: 'postgres',
      sql: `insert into ${table} select (jsonb_populate_record(t, jsonb_build_object(${fields}))).*
              from ${table} t, generate_series(0, ${customers - 1}) as n`,
    });
  await copies('customers', `'id', ${idOf('cust')}, 'external_id', 'customer_' || n`);
  await copies('subscriptions', `'id', ${idOf('subs')}, 'customer_id', ${idOf('cust')}`);
  const line = `'id', ${idOf('subs_line')}, 'subscription_id', ${idOf('subs')}, 'customer_id', ${idOf('cust')}`;
  await copies('subscription_line_items', line);
  await copies('wallets', `'id', ${idOf('wallet')}, 'customer_id', ${idOf('cust')}`);
  await service.call({ what: 'postgres', sql: 'analyze' });
}

function idOf(prefix: string): string {
  return `'${prefix}_' || lpad(upper(to_hex(n)), 26, '0')`;
}

export const KINDS = ['balance', 'usage', 'entitlements'] as const;
export const PATHS: Record<(typeof KINDS)[number], (n: number) => string> = {
  balance: (n) => `/v1/wallets/${copyName('wallet', n)}/balance/real-time`,
  usage: (n) => `/v1/customers/usage?customer_id=${copyName('cust', n)}`,
  entitlements: (n) => `/v1/customers/${copyName('cust', n)}/entitlements`,
};

/** Id of the nth copy that `makeCustomers` creates. */
export function copyName(prefix: string, n: number): string {
  return `${prefix}_${n.toString(16).toUpperCase().padStart(26, '0')}`;
}

const EVENTS_AT_ONCE = 1000;

export async function sendEvents(
  service: { readonly url: string; readonly api_key: string },
  customers: readonly number[],
): Promise<void> {
  for (let from = 0; from < customers.length; from += EVENTS_AT_ONCE) {
    const events = customers.slice(from, from + EVENTS_AT_ONCE).map((n) => ({
      event_name: 'calls',
      external_customer_id: `customer_${n}`,
      timestamp: new Date().toISOString(),
      properties: { n: 1 + (n % 7) },
    }));
    await post(service, '/events/bulk', { events });
  }
}
