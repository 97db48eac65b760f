/**
 * A year of three customers in an environment with a test clock. Their actions are sent first, then the clock advances, and every month is
 * compared with three lines of arithmetic (docs/rules/clock.md).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Client, type DemoFields } from './client.ts';
import { formatDollars, parseCents } from './recompute.ts';
import { renderTable } from './screen.ts';

const START = '2026-01-01T00:00:00Z';
const TRIAL = '2026-01-15T00:00:00Z';
const YEARLY = '2026-01-31T00:00:00Z';
const CANCELS = '2026-09-20T00:00:00Z';
const END = '2027-01-01T00:00:00Z';
const CUSTOMERS = ['Acme', 'Bolt', 'Cora'] as const;
type YearCustomer = (typeof CUSTOMERS)[number];
/** Month of 2026; 13 is January 2027. */
type Month = number;

/**
 * Computes the expected amount in cents. Acme pays $20 in advance and one cent per call of the previous month. Bolt pays $20 a month from
 * its trial to its end. Cora pays $200 for a year.
 */
function expected(customer: YearCustomer, month: Month): bigint {
  if (customer === 'Acme') return 2_000n + BigInt(callsIn(month - 1));
  if (customer === 'Bolt') return month <= 8 ? 2_000n : 0n;
  return month === 1 ? 20_000n : 0n;
}

function callsIn(month: Month): number {
  return month * 100;
}

type YearRecord = { readonly id: string };
type Clock = YearRecord & {
  readonly test_clock_status: 'ready' | 'advancing' | 'failed';
  readonly frozen_time: string;
  readonly failure: { readonly message: string } | null;
  readonly progress: { readonly instants: number; readonly done: Readonly<Record<string, number>> };
};

export async function runYear(client: Client) {
  const year = await createEnvironment(client);
  const { id } = await year.post<Clock>('/test-clocks', { frozen_time: START, name: 'A year of three customers' });
  const sums = { instants: 0, billed: 0 };
  const until = async (frozen_time: string) => {
    const { instants, done } = (await advance(year, id, frozen_time)).progress;
    sums.instants += instants;
    sums.billed += done.billed ?? 0;
  };
  const plans = await createPlans(year);
  await subscribe(year, 'Acme', { plan_id: plans.monthly });
  await year.sendEvents(Array.from({ length: 12 }, (_, index) => buildCallsEvent(index + 1)));
  await until(TRIAL);
  const bolt = await subscribe(year, 'Bolt', { plan_id: plans.monthly, trial_period_days: 14 });
  await until(YEARLY);
  await subscribe(year, 'Cora', { plan_id: plans.yearly, billing_period: 'ANNUAL' });
  await until(CANCELS);
  await year.post(`/subscriptions/${bolt.id}/cancel`, { cancellation_type: 'end_of_period' });
  await until(END);
  const { shown, invoices } = await showMonths(year);
  return {
    message: `${invoices} invoices of three customers by a clock of their own: ${sums.billed} periods at ${sums.instants} instants, as computed`,
    result: shown,
  };
}

async function createEnvironment(client: Client): Promise<Client> {
  const environment = await client.post<YearRecord>('/environments', { name: 'A year', type: 'development' });
  const wanted = { name: 'A year', type: 'private_key', environment_id: environment.id };
  const { api_key } = await client.post<{ api_key: string }>('/secrets/api/keys', wanted);
  return new Client(client.url, api_key);
}

async function createPlans(year: Client): Promise<{ monthly: string; yearly: string }> {
  const aggregation = { type: 'SUM', field: 'calls' };
  const meter = await year.post<YearRecord>('/meters', { name: 'Calls', event_name: 'demo.calls', aggregation });
  const monthly = await year.post<YearRecord>('/plans', { name: 'Monthly' });
  const yearly = await year.post<YearRecord>('/plans', { name: 'Yearly' });
  const ahead = { type: 'FIXED', invoice_cadence: 'ADVANCE', billing_period: 'MONTHLY' };
  await year.post('/prices', buildPrice(monthly, { ...ahead, amount: '20' }));
  const usage = { type: 'USAGE', invoice_cadence: 'ARREAR', billing_period: 'MONTHLY', meter_id: meter.id };
  await year.post('/prices', buildPrice(monthly, { ...usage, amount: '0.01' }));
  await year.post('/prices', buildPrice(yearly, { ...ahead, billing_period: 'ANNUAL', amount: '200' }));
  return { monthly: monthly.id, yearly: yearly.id };
}

function buildPrice({ id }: YearRecord, terms: DemoFields): DemoFields {
  const plan = { entity_type: 'PLAN', entity_id: id, currency: 'usd', billing_cadence: 'RECURRING' };
  return { ...plan, billing_model: 'FLAT_FEE', billing_period_count: 1, price_unit_type: 'FIAT', ...terms };
}

async function subscribe(year: Client, customer: YearCustomer, terms: DemoFields): Promise<YearRecord> {
  await year.post('/customers', { external_id: customer, name: customer });
  const monthly = { currency: 'usd', billing_period: 'MONTHLY', billing_period_count: 1 };
  return year.post('/subscriptions', { external_customer_id: customer, ...monthly, ...terms });
}

/** Acme's calls in that month, sent before it begins. */
function buildCallsEvent(month: Month): DemoFields {
  const timestamp = `2026-${String(month).padStart(2, '0')}-10T12:00:00Z`;
  const properties = { calls: callsIn(month) };
  return { event_id: `calls-${month}`, event_name: 'demo.calls', external_customer_id: 'Acme', timestamp, properties };
}

async function advance(year: Client, id: string, frozen_time: string): Promise<Clock> {
  await year.post(`/test-clocks/${id}/advance`, { frozen_time });
  for (;;) {
    const clock = await year.get<Clock>(`/test-clocks/${id}`);
    if (clock.test_clock_status === 'ready') return clock;
    if (clock.failure) throw new Error(`the clock stands at ${clock.frozen_time}: ${clock.failure.message}`);
    await pause(100);
  }
}

type YearInvoice = { readonly total: string; readonly created_at: string; readonly customer_id: string };

/** One row per month; throws if an invoice total differs from the arithmetic. */
async function showMonths(year: Client): Promise<{ shown: string; invoices: number }> {
  const { items } = await year.post<{ items: YearInvoice[] }>('/invoices/search', {
    limit: 1000,
    invoice_status: ['FINALIZED'],
  });
  const customers = await Promise.all(CUSTOMERS.map((name) => year.get<YearRecord>(`/customers/external/${name}`)));
  const rows = Array.from({ length: 13 }, (_, index) => index + 1).map((month) => {
    const day = new Date(Date.UTC(2026, month - 1)).toISOString().slice(0, 7);
    const amounts = customers.map(({ id }, of) => {
      const invoices = items.filter((one) => one.customer_id === id && one.created_at.startsWith(day));
      const total = invoices.reduce((sum, one) => sum + inCents(one), 0n);
      const wanted = expected(CUSTOMERS[of]!, month);
      if (total !== wanted)
        throw new Error(
          `${CUSTOMERS[of]} in ${day}: ${formatDollars(total)} were billed instead of ${formatDollars(wanted)}`,
        );
      return total === 0n ? '' : formatDollars(total);
    });
    return [day, ...amounts];
  });
  return { shown: renderTable([['USD', ...CUSTOMERS], ...rows]), invoices: items.length };
}

function inCents({ total }: YearInvoice): bigint {
  const cents = parseCents(total);
  if (cents === null) throw new Error(`an invoice of ${total}, which is no whole number of cents`);
  return cents;
}
