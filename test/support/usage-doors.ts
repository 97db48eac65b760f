/** Each door is a way to read the cost of a customer's usage in January 2026: a text for each line, and the total. */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice, InvoiceLine } from './answers.ts';
import { downloadOnce, type Exports } from './exported.ts';
import { check, provenBy } from './verifier.ts';
import type { World } from './world.ts';

const RANGE = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' };

export type Doors = Record<string, () => Promise<string[]>>;

/** Formats amounts of lines as `begin amount`, in order, and then `= total`. */
function formatLines(all: readonly InvoiceLine[]): string[] {
  const lines = all.map(({ period_start, amount }) => {
    const begin = new Date(period_start!).toISOString().slice(0, 16);
    return `${begin} ${new Decimal(amount).toFixed()}`;
  });
  return [...lines.sort(), total(all.map(({ amount }) => amount))];
}

/** Formats the total, the only result of ways to read usage without lines. */
export function total(amounts: readonly string[]): string {
  return `= ${sumDecimals(amounts.map((amount) => new Decimal(amount)))
    .toDecimalPlaces(2)
    .toFixed()}`;
}

export type Asked = {
  customer: string;
  meter_id: string;
  meter_name: string;
  exports: Exports;
  /** Empty wallets by customer. */
  wallets: Map<string, string>;
};

/** Ways to read usage that work during the period. */
export function runningDoors(world: World, asked: Asked): Doors {
  const { customer } = asked;
  return {
    preview: async () => formatLines(usageLines(await world.preview(customer), asked)),
    'subscription usage': async () => subscriptionUsage(world, asked, {}),
    balance: async () => {
      const terms = { external_customer_id: customer, currency: 'usd' };
      const id = asked.wallets.get(customer) ?? (await world.post('/wallets', terms)).id;
      asked.wallets.set(customer, id);
      const { current_period_usage } = await world.get(`/wallets/${id}/balance/real-time`);
      return [total([current_period_usage!])];
    },
    ...rangeDoors(world, asked),
  };
}

/** Ways to read usage that work after the period; `status` is that of its invoices. */
export function overDoors(world: World, asked: Asked, status: 'DRAFT' | 'FINALIZED'): Doors {
  return {
    [status]: async () => {
      const invoices = await world.invoices(asked.customer);
      const lines = invoices.flatMap((invoice) => usageLines(invoice, asked));
      for (const { invoice_status } of invoices.filter((invoice) => usageLines(invoice, asked).length > 0))
        expect(invoice_status).to.be.oneOf([status, 'SKIPPED']);
      return formatLines(lines);
    },
    proof: () => proven(world, asked),
    'subscription usage of the dates': () => subscriptionUsage(world, asked, RANGE),
    ...rangeDoors(world, asked),
  };
}

/** The invoice as the verifier computes it: the total if all of it agrees, otherwise each difference. */
async function proven(world: World, asked: Asked): Promise<string[]> {
  const invoices = (await world.invoices(asked.customer)).filter(({ invoice_status }) => invoice_status !== 'DRAFT');
  const differences: string[] = [];
  for (const { id } of invoices) {
    const verdict = await check(await provenBy(world.api, id));
    differences.push(...verdict.differences.map((difference) => JSON.stringify(difference)));
  }
  if (differences.length > 0) return differences;
  return [total(invoices.flatMap((invoice) => usageLines(invoice, asked).map(({ amount }) => amount)))];
}

function rangeDoors(world: World, asked: Asked): Doors {
  return {
    analytics: async () => {
      const query = { external_customer_id: asked.customer, ...RANGE };
      const { items } = await world.post('/events/analytics', query);
      const own = items.filter(({ meter_id }) => meter_id === asked.meter_id);
      return [total(own.map(({ total_cost }) => total_cost!))];
    },
    'export with amounts': () => exported(world, asked, ''),
    'export by day': () => exported(world, asked, '&split=day'),
  };
}

async function subscriptionUsage(world: World, { customer, meter_id }: Asked, range: Partial<typeof RANGE>) {
  const subscription_id = world.id(`subscription ${customer}`);
  const { charges } = await world.post('/subscriptions/usage', { subscription_id, ...range });
  const own = charges.filter((charge) => charge.meter_id === meter_id);
  return [total(own.map(({ amount }) => amount))];
}

/** One export has all customers and meters. */
async function exported(world: World, { customer, meter_name, exports }: Asked, more: string): Promise<string[]> {
  const query = `start_time=${RANGE.start_time}&end_time=${RANGE.end_time}&amounts=true${more}`;
  const all = await downloadOnce(world, exports, query);
  const rows = all.filter(
    (row) => row.external_customer_id === customer && row.meter_name === meter_name && row.amount,
  );
  return [total(rows.map((row) => row.amount!))];
}

/** Selects the lines of the meter for January. A meter that never resets is charged in other months, too. */
function usageLines({ line_items }: Invoice, { meter_id }: Asked) {
  const [from, to] = [Date.parse(RANGE.start_time), Date.parse(RANGE.end_time)];
  return line_items.filter(
    (line) =>
      line.meter_id === meter_id && Date.parse(line.period_start!) >= from && Date.parse(line.period_start!) < to,
  );
}
