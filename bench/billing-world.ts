/** What the benchmarks of billing bill: customers with a fixed price in advance and usage in arrears, by the clock of an environment. */
import { mapConcurrently } from '../storage/together.ts';
import { post, type Service } from './processes.ts';

const START = Date.UTC(2026, 0, 1);

export type Found = { readonly id: string };
export type BillingCaller = {
  readonly url: string;
  readonly api_key: string;
  readonly environment_id: string;
  /** The id of its clock. */
  readonly clock: string;
};
export type Size = { readonly customers: number; readonly months: number };

/** An environment of its own, where everything is sent that the months will need. */
export async function makeWorld(service: Service, { customers, months }: Size): Promise<BillingCaller> {
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
  await mapConcurrently(AT_ONCE, [...Array(customers).keys()], async (index) => {
    const external_id = `customer ${index}`;
    await made('/customers', { external_id, name: external_id });
    await made('/subscriptions', { external_customer_id: external_id, plan_id, currency: 'usd', ...MONTHLY });
    for (let from = 0; from < months; from += 1000) {
      const some = Array.from({ length: Math.min(1000, months - from) }, (_, month) => from + month);
      await post(caller, '/events/bulk', { events: some.map((month) => callsOf(external_id, month)) });
    }
  });
  await service.settled();
  return { ...caller, environment_id, clock };
}

const AT_ONCE = 4;

const MONTHLY = { billing_period: 'MONTHLY', billing_period_count: 1 };

function callsOf(external_customer_id: string, month: number): object {
  const timestamp = new Date(Date.UTC(2026, month, 10)).toISOString();
  return { event_name: 'calls', external_customer_id, timestamp, properties: { n: 100 + month } };
}
