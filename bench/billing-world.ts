/**
 * Creates the environment that the billing benchmarks use: customers with a fixed price in advance and usage in arrears, and a test clock.
 */
import { mapConcurrently } from '../storage/concurrency/batch-loader.ts';
import { copyCustomers } from './copied-customers.ts';
import { post, type Service } from './processes.ts';

const START = Date.UTC(2026, 0, 1);

export type Found = { readonly id: string };
export type BillingCaller = {
  readonly url: string;
  readonly api_key: string;
  readonly environment_id: string;
  /** Id of the test clock of the environment. */
  readonly clock: string;
};
export type Size = {
  readonly customers: number;
  readonly months: number;
  /** If true, all customers but the first are copies of it: a request for each customer would take too long. */
  readonly copied?: boolean;
};

/** Creates an environment of its own and sends all usage of the months before they are billed. */
export async function makeWorld(service: Service, { customers, months, copied = false }: Size): Promise<BillingCaller> {
  const { id: environment_id } = await service.post<Found>('/environments', { name: 'Clock', type: 'development' });
  const key = { name: 'Clock', type: 'private_key', environment_id };
  const { api_key } = await service.post<{ api_key: string }>('/secrets/api/keys', key);
  const caller = { url: service.url, api_key };
  const made = async (path: string, body: object) => (await post<Found>(caller, path, body)).id;
  const clock = await made('/test-clocks', { frozen_time: new Date(START).toISOString() });
  const aggregation = { type: 'SUM', field: 'n' };
  const meter_id = await made('/meters', { name: 'Calls', event_name: 'calls', aggregation });
  const plan_id = await made('/plans', { name: 'Pro' });
  const price = { entity_type: 'PLAN', entity_id: plan_id, currency: 'usd', billing_cadence: 'RECURRING' };
  const terms = { ...price, billing_model: 'FLAT_FEE', ...MONTHLY, price_unit_type: 'FIAT' };
  await made('/prices', { ...terms, type: 'FIXED', amount: '20', invoice_cadence: 'ADVANCE' });
  await made('/prices', { ...terms, type: 'USAGE', amount: '0.01', invoice_cadence: 'ARREAR', meter_id });
  const names = Array.from({ length: customers }, (_, index) => `customer ${index}`);
  await mapConcurrently(AT_ONCE, copied ? names.slice(0, 1) : names, async (external_id) => {
    await made('/customers', { external_id, name: external_id });
    await made('/subscriptions', { external_customer_id: external_id, plan_id, currency: 'usd', ...MONTHLY });
  });
  if (copied) await copyCustomers(service, environment_id, customers - 1);
  const events = names.flatMap((name) => Array.from({ length: months }, (_, month) => callsOf(name, month)));
  for (let from = 0; from < events.length; from += 1000)
    await post(caller, '/events/bulk', { events: events.slice(from, from + 1000) });
  await service.waitUntilMerged();
  return { ...caller, environment_id, clock };
}

const AT_ONCE = 4;

const MONTHLY = { billing_period: 'MONTHLY', billing_period_count: 1 };

function callsOf(external_customer_id: string, month: number): object {
  const timestamp = new Date(Date.UTC(2026, month, 10)).toISOString();
  return { event_name: 'calls', external_customer_id, timestamp, properties: { n: 100 + month } };
}
