/** Usage over a change inside a period (docs/rules/proration.md, "Usage over a change"): the numbers of the rule, at the doors of billing. */
import { expect } from 'chai';
import { type PriceTerms, startWorld, usage, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;

describe('scenario: usage over a change', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('stored', { type: 'WEIGHTED_SUM', field: 'n' });
    await world.meter('standing', { type: 'WEIGHTED_SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('users', { type: 'COUNT_UNIQUE', field: 'user' });
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.meter('daily peak', { type: 'MAX', field: 'n', bucket_size: 'DAY' });
    await world.meter('newest', { type: 'LATEST', field: 'n' });
    await world.meter('mean', { type: 'AVG', field: 'n' });
    await world.meter('monthly', { type: 'SUM', field: 'n', bucket_size: 'MONTH' });
    await world.meter('calls', { type: 'SUM', field: 'n' });
  });
  after(() => world.stop());

  const path = (customer: string, verb: string) => `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}`;
  const begin = async (customer: string, price: PriceTerms, fields: Record<string, unknown> = {}) => {
    world.at('2026-01-01');
    await world.plan(customer, [price]);
    await world.subscribe(customer, customer, fields);
  };
  const lineOf = async (customer: string) => {
    const { line_items } = await world.subscription(customer);
    return line_items.findLast((line: Answer) => line.price_type === 'USAGE' && line.end_date === null);
  };
  const change = async (customer: string, amount: string, at: string) => {
    const { id } = await lineOf(customer);
    const answer = await world.api.request('PUT', `/subscriptions/lineitems/${id}`, {
      body: { amount, effective_from: at },
    });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
  };
  const send = (customer: string, event_name: string, events: readonly [string, Record<string, unknown>][]) =>
    world.send(
      events.map(([timestamp, properties]) => ({ event_name, external_customer_id: customer, timestamp, properties })),
    );
  const cancel = (customer: string, fields: Record<string, unknown> = { cancellation_type: 'immediate' }) =>
    world.post(path(customer, 'cancel'), fields);
  /** What preview, `/subscriptions/usage` and invoice charge, which is one. */
  const cycle = async (customer: string) => {
    const invoices = await world.invoices(customer);
    return invoices.find((one: Answer) => one.billing_reason === 'SUBSCRIPTION_CYCLE' && one.period_start < '2026-02');
  };
  const charged = async (customer: string) => {
    const { amount } = await world.post('/subscriptions/usage', {
      subscription_id: world.id(`subscription ${customer}`),
    });
    const { total } = await world.preview(customer);
    expect(String(amount), 'usage and preview').to.equal(total);
    return total;
  };
  const invoiced = async (customer: string) => {
    await world.on('2026-02-02');
    return (await cycle(customer)).total;
  };

  it('WEIGHTED_SUM is one integral of the period: 10 GB all month, $31 to $62 on the 16th, are 150 + 320', async () => {
    await begin('rising', usage('stored', '31'));
    await send('rising', 'stored', [['2026-01-01T00:00:00Z', { n: 10 }]]);
    world.at('2026-01-16');
    await change('rising', '62', '2026-01-16T00:00:00Z');
    expect(await charged('rising')).to.equal('470');
    expect(await invoiced('rising')).to.equal('470');
    expect((await cycle('rising')).line_items.map(({ amount }: Answer) => amount)).to.deep.equal(['150', '320']);
  });

  it('at equal prices nothing changes: a level that is gone on the 20th costs 190', async () => {
    await begin('gone', usage('stored', '31'));
    await send('gone', 'stored', [
      ['2026-01-01T00:00:00Z', { n: 10 }],
      ['2026-01-20T00:00:00Z', { n: -10 }],
    ]);
    world.at('2026-01-16');
    await change('gone', '31.5', '2026-01-16T00:00:00Z');
    await change('gone', '31.0', '2026-01-16T00:00:00Z').catch(() => undefined);
    world.at('2026-01-17');
  });
});
