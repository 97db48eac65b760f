/** Two subscriptions of one customer with prices on one meter (docs/rules/subscriptions.md, "One meter in two subscriptions"). */
import { expect } from 'chai';
import type { ErrorAnswer, Price, Subscription } from '../../support/answers.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

describe('meters in two subscriptions of one customer', () => {
  let world: World;
  const send = <Path extends string>(path: Path, body: object) => world.api.request('POST', path, { body });
  const refuse = async (refuse_shared_meters: boolean): Promise<void> => {
    const answer = await world.api.request('PUT', '/settings/subscription_config', {
      body: { value: { refuse_shared_meters } },
    });
    expect(answer.status, answer.text).to.equal(200);
  };
  const subscribe = async (customer: string, plan: string, fields: object = {}) => {
    const [found] = (await world.get(`/customers?external_id=${customer}`)).items;
    if (!found) await world.post('/customers', { external_id: customer, name: customer });
    return send('/subscriptions', {
      external_customer_id: customer,
      plan_id: world.id(`plan ${plan}`),
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_cycle: 'anniversary',
      ...fields,
    });
  };
  const made = async (customer: string, plan: string, fields: object = {}) => {
    const answer = await subscribe(customer, plan, fields);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const expectRefused = (
    answer: { status: number; text: string; body: Partial<ErrorAnswer> },
    first: Subscription,
  ): void => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_operation']);
    expect(answer.body.details).to.deep.include({ meter_id: world.id('meter calls'), subscription_ids: [first.id] });
  };

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.meter('seats');
    await world.plan('Calls', [usage('calls', '1')]);
    await world.plan('More calls', [usage('calls', '2')]);
    await world.plan('Seats', [usage('seats', '1')]);
  });
  after(() => world.stop());
  afterEach(() => refuse(false));

  it('both charge each event, and the answer that makes the second says so', async () => {
    const first = await made('acme', 'Calls');
    expect(first.warnings).to.deep.equal([]);
    const second = await made('acme', 'More calls');
    const [warning] = second.warnings!;
    expect(second.warnings).to.have.length(1);
    expect(warning).to.include({ code: 'shared_meter', field: 'meter_id', meter_id: world.id('meter calls') });
    expect(warning!.subscription_ids).to.deep.equal([first.id]);
    expect(warning!.message).to.contain('calls').and.to.contain(first.id);
    expect((await world.get(`/subscriptions/${second.id}`)).warnings).to.equal(null);
    await world.send([world.event('acme', 'calls', { n: 10, at: '2026-01-01T00:00:00Z' })]);
    await world.waitForPipeline();
    const totals = await Promise.all(
      [first, second].map(async ({ id }) => (await world.post('/invoices/preview', { subscription_id: id })).total),
    );
    expect(totals).to.deep.equal(['10', '20']);
  });

  it('nothing is said of other meters, of other customers, and of one that has ended', async () => {
    expect((await made('globex', 'Calls', { end_date: '2026-02-01T00:00:00Z' })).warnings).to.deep.equal([]);
    expect((await made('globex', 'Seats')).warnings).to.deep.equal([]);
    expect((await made('initech', 'Calls')).warnings).to.deep.equal([]);
    expect((await made('globex', 'Calls', { start_date: '2026-02-01T00:00:00Z' })).warnings).to.deep.equal([]);
  });

  it('of a line that is added, an add-on that is attached, and a plan that is changed', async () => {
    const first = await made('umbrella', 'Calls');
    const second = await made('umbrella', 'Seats');
    const price = (await world.get(`/plans/${world.id('plan More calls')}`)).prices![0];
    const line = await send(`/subscriptions/${second.id}/lineitems`, { price_id: price!.id });
    expect(line.status, line.text).to.equal(201);
    expect(line.body.warnings!.map(({ subscription_ids }) => subscription_ids)).to.deep.equal([[first.id]]);
    const third = await made('umbrella', 'Seats');
    const addon = await world.post('/addons', { name: 'Calls', lookup_key: 'calls', type: 'onetime' });
    const { id: _id, ...copied } = price!;
    await world.post('/prices', { ...priceFields(copied), entity_type: 'ADDON', entity_id: addon.id });
    const attached = await send('/subscriptions/addon', { subscription_id: third.id, addon_id: addon.id });
    expect(attached.status, attached.text).to.equal(200);
    expect(attached.body.warnings![0]!.subscription_ids).to.include(first.id);
    const fourth = await made('umbrella', 'Seats');
    const change = { target_plan_id: world.id('plan Calls'), proration_behavior: 'create_prorations' };
    for (const path of ['change/preview', 'change/v2/preview', 'change/execute'] as const) {
      const changed = await send(`/subscriptions/${fourth.id}/${path}`, {
        ...change,
        ...(path.includes('v2') ? {} : PERIODS),
      });
      expect(changed.status, changed.text).to.equal(200);
      expect(changed.body.warnings!.join(), path).to.contain(first.id);
    }
  });

  it('is refused where the setting says so, by every request that begins a line', async () => {
    const first = await made('hooli', 'Calls');
    const other = await made('hooli', 'Seats');
    await refuse(true);
    expectRefused(await subscribe('hooli', 'More calls'), first);
    const price = (await world.get(`/plans/${world.id('plan More calls')}`)).prices![0];
    expectRefused(await send(`/subscriptions/${other.id}/lineitems`, { price_id: price!.id }), first);
    const change = {
      target_plan_id: world.id('plan Calls'),
      proration_behavior: 'create_prorations',
      ...PERIODS,
    };
    expectRefused(await send(`/subscriptions/${other.id}/change/preview`, change), first);
    expectRefused(await send(`/subscriptions/${other.id}/change/execute`, change), first);
    const draft = await made('hooli', 'More calls', { subscription_status: 'draft' });
    expectRefused(await send(`/subscriptions/${draft.id}/activate`, { start_date: '2026-01-01T00:00:00Z' }), first);
    // A subscription that has a line on the meter already may change its price.
    const [line] = first.line_items;
    const repriced = await world.api.request('PUT', `/subscriptions/lineitems/${line!.id}`, { body: { amount: '3' } });
    expect(repriced.status, repriced.text).to.equal(200);
  });

  it('of two that come at one time one is made', async () => {
    await world.post('/customers', { external_id: 'stark', name: 'stark' });
    const [seats, more] = [await made('stark', 'Seats'), await made('stark', 'Seats')];
    await refuse(true);
    const answers = await Promise.all(['Calls', 'More calls', 'Calls'].map((plan) => subscribe('stark', plan)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, 400, 400]);
    const running = answers.find(({ status }) => status === 201)!.body;
    await send(`/subscriptions/${running.id}/cancel`, { cancellation_type: 'immediate' });
    const price = (await world.get(`/plans/${world.id('plan Calls')}`)).prices![0];
    world.at('2026-01-02');
    const added = await Promise.all(
      [seats, more].map(({ id }) => send(`/subscriptions/${id}/lineitems`, { price_id: price!.id })),
    );
    expect(added.map(({ status }) => status).sort()).to.deep.equal([201, 400]);
  });
});

const PERIODS = {
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  billing_cycle: 'anniversary',
  billing_cadence: 'RECURRING',
};

function priceFields({ meter_id, currency, amount }: Pick<Price, 'meter_id' | 'currency' | 'amount'>): object {
  return {
    meter_id,
    currency,
    amount,
    type: 'USAGE',
    price_unit_type: 'FIAT',
    billing_model: 'FLAT_FEE',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    billing_cadence: 'RECURRING',
    invoice_cadence: 'ARREAR',
  };
}
