// What no column can hold is refused by name before it reaches one: 400 with the field, never 500.
import { expect } from 'chai';
import { PlanModel } from '../../storage/models/catalog/plan.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

type Fields = Record<string, unknown>;

const BEYOND_INT32 = 2_147_483_648;
const LONG = 'k'.repeat(3_000);
const MANY = Array.from({ length: 65_600 }, (_, i) => `${i}`);
const NUL = 'a\0b';
const HALF = 'a\ud800b';
const NINES = '9'.repeat(21);

describe('limits of what is stored', () => {
  let api: TestApi;
  let ids: Record<'meter' | 'plan' | 'customer' | 'subscription', string>;

  before(async () => {
    api = await startTestApi({ now: '2026-01-10T00:00:00Z' });
    const meter = await made('/meters', bodies.meter());
    const plan = await made('/plans', { name: 'Pro' });
    ids = { meter, plan, customer: '', subscription: '' };
    await made('/prices', bodies.price());
    ids.customer = await made('/customers', { external_id: 'acme', name: 'Acme' });
    ids.subscription = await made('/subscriptions', bodies.subscription());
  });
  after(() => api.stop());

  async function made(path: string, body: Fields): Promise<string> {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body.id as string;
  }

  const bodies = {
    meter: () => ({ name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } }),
    feature: () => ({ name: 'Calls', type: 'metered', meter_id: ids.meter }),
    plan: () => ({ name: 'Basic' }),
    price: () => ({
      entity_type: 'PLAN',
      entity_id: ids.plan,
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      amount: '1',
      currency: 'usd',
      billing_period: 'MONTHLY',
      invoice_cadence: 'ARREAR',
    }),
    customer: () => ({ external_id: 'other', name: 'Other' }),
    subscription: () => ({
      customer_id: ids.customer,
      plan_id: ids.plan,
      currency: 'usd',
      billing_period: 'MONTHLY',
      start_date: '2026-01-01T00:00:00Z',
    }),
    invoice: () => ({
      customer_id: ids.customer,
      currency: 'usd',
      amount_due: '1',
      subtotal: '1',
      total: '1',
      invoice_type: 'ONE_OFF',
    }),
    user: () => ({ type: 'user', email: 'ann@example.com', roles: [] }),
    key: () => ({ name: 'Collector', type: 'private_key' }),
    environment: () => ({ name: 'Sandbox', type: 'sandbox' }),
    none: () => ({}),
  };
  type Kind = keyof typeof bodies;

  const rows: [path: string, of: Kind, change: Fields, field: string][] = [
    ['/meters', 'meter', { name: LONG }, 'name'],
    ['/meters', 'meter', { filters: [{ key: LONG, values: ['v'] }] }, 'filters[0].key'],
    ['/meters', 'meter', { filters: [{ key: 'k', values: MANY }] }, 'filters[0].values'],
    ['/plans', 'plan', { description: 'd'.repeat(70_000) }, 'description'],
    ['/plans', 'plan', { metadata: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [i, ''])) }, 'metadata'],
    ['/customers', 'customer', { metadata: { note: 'n'.repeat(5_001) } }, 'metadata.note'],
    [
      '/invoices',
      'invoice',
      { line_items: [{ amount: '1', quantity: '1', entity_id: LONG }] },
      'line_items[0].entity_id',
    ],
    ['/users', 'user', { name: LONG }, 'name'],
    ['/secrets/api/keys', 'key', { name: LONG }, 'name'],
    ['/environments', 'environment', { name: LONG }, 'name'],
    ['/meters', 'meter', { name: NUL }, 'name'],
    ['/meters', 'meter', { event_name: LONG }, 'event_name'],
    ['/meters', 'meter', { filters: [{ key: 'k', values: ['v', HALF] }] }, 'filters[0].values[1]'],
    ['/customers', 'customer', { metadata: JSON.parse('{"__proto__":"x"}') }, 'metadata.__proto__'],
    [
      '/meters',
      'meter',
      { aggregation: { type: 'SUM_WITH_MULTIPLIER', field: 'f', multiplier: NINES } },
      'aggregation.multiplier',
    ],
    ['/features', 'feature', { name: LONG }, 'name'],
    ['/features', 'feature', { lookup_key: LONG }, 'lookup_key'],
    ['/features', 'feature', { metadata: { a: NUL } }, 'metadata.a'],
    ['/plans', 'plan', { display_order: BEYOND_INT32 }, 'display_order'],
    ['/plans', 'plan', { display_order: -BEYOND_INT32 - 1 }, 'display_order'],
    ['/plans', 'plan', { display_order: 1.5 }, 'display_order'],
    ['/plans', 'plan', { lookup_key: LONG }, 'lookup_key'],
    ['/plans', 'plan', { description: HALF }, 'description'],
    ['/prices', 'price', { billing_period_count: BEYOND_INT32 }, 'billing_period_count'],
    ['/prices', 'price', { trial_period_days: BEYOND_INT32 }, 'trial_period_days'],
    ['/prices', 'price', { trial_period: 1e300 }, 'trial_period'],
    ['/prices', 'price', { amount: NINES }, 'amount'],
    ['/prices', 'price', { min_quantity: NINES }, 'min_quantity'],
    ['/prices', 'price', { lookup_key: LONG }, 'lookup_key'],
    ['/prices', 'price', { start_date: '9999-12-31T23:59:59-12:00' }, 'start_date'],
    ['/prices', 'price', { end_date: '0000-01-01T00:00:00Z' }, 'end_date'],
    ['/customers', 'customer', { external_id: LONG }, 'external_id'],
    ['/customers', 'customer', { email: `${'e'.repeat(3_000)}@example.com` }, 'email'],
    ['/customers', 'customer', { metadata: { ['k\0']: 'v' } }, 'metadata'],
    ['/subscriptions', 'subscription', { billing_period_count: BEYOND_INT32 }, 'billing_period_count'],
    ['/subscriptions', 'subscription', { billing_period_count: 2_147_483_647 }, 'billing_period_count'],
    ['/subscriptions', 'subscription', { billing_period_count: 95_700 }, 'billing_period'],
    ['/subscriptions', 'subscription', { billing_period: 'DAILY', billing_period_count: 9e6 }, 'billing_period_count'],
    ['/subscriptions', 'subscription', { start_date: '9999-12-31T00:00:00Z' }, 'billing_period'],
    [
      '/subscriptions',
      'subscription',
      { start_date: '9999-12-31T00:00:00Z', billing_cycle: 'calendar' },
      'billing_period',
    ],
    ['/subscriptions', 'subscription', { start_date: '0001-01-01T00:00:00+00:01' }, 'start_date'],
    ['/subscriptions', 'subscription', { end_date: '9999-12-31T23:59:59-12:00' }, 'end_date'],
    ['/subscriptions', 'subscription', { trial_period_days: BEYOND_INT32 }, 'trial_period_days'],
    ['/subscriptions', 'subscription', { lookup_key: LONG }, 'lookup_key'],
    ['/subscriptions', 'subscription', { metadata: { a: NUL } }, 'metadata.a'],
    ['/invoices', 'invoice', { amount_due: NINES }, 'amount_due'],
    ['/invoices', 'invoice', { idempotency_key: LONG }, 'idempotency_key'],
    ['/invoices', 'invoice', { due_date: '9999-12-31T23:59:59-12:00' }, 'due_date'],
    ['/invoices', 'invoice', { description: NUL }, 'description'],
    ['/users', 'user', { email: `${'e'.repeat(3_000)}@example.com` }, 'email'],
    ['/users', 'user', { name: NUL }, 'name'],
    ['/secrets/api/keys', 'key', { name: NUL }, 'name'],
    ['/secrets/api/keys', 'key', { expires_at: '9999-12-31T23:59:59-12:00' }, 'expires_at'],
    ['/environments', 'environment', { name: HALF }, 'name'],
    ['/customers/search', 'none', { offset: 1e300 }, 'offset'],
    ['/customers/search', 'none', { external_id: NUL }, 'external_id'],
    ['/customers/search', 'none', { start_time: '9999-12-31T23:59:59-12:00' }, 'start_time'],
    [
      '/customers/search',
      'none',
      { start_time: '2026-01-01T00:00:00Z', end_time: '2026-01-01T00:30:00+01:00' },
      'end_time',
    ],
    ['/invoices/search', 'none', { amount_due_gt: NINES }, 'amount_due_gt'],
    ['/invoices/preview', 'none', { subscription_id: 'x', period_end: '9999-12-31T23:59:59-12:00' }, 'period_end'],
    ['/subscriptions/usage', 'none', { subscription_id: 'x', end_time: '0000-01-01T00:00:00Z' }, 'end_time'],
  ];
  for (const [path, of, change, field] of rows) {
    const value = JSON.stringify(Object.values(change)[0]).slice(0, 40);
    it(`400 POST ${path} names ${field} for ${value}`, async () => {
      const answer = await api.request('POST', path, { body: { ...bodies[of](), ...change } });
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field, answer.text).to.equal(field);
    });
  }

  it('400 in a batch names the one at fault', async () => {
    const items = [bodies.price(), { ...bodies.price(), billing_period_count: BEYOND_INT32 }];
    const answer = await api.request('POST', '/prices/bulk', { body: { items } });
    expect([answer.status, answer.body.details!.field]).to.deep.equal([400, 'items[1].billing_period_count']);
  });

  it('400 for a NUL in a path and in a query', async () => {
    const inPath = await api.request('GET', '/meters/a%00b');
    expect([inPath.status, inPath.body.details?.field], inPath.text).to.deep.equal([400, 'id']);
    const inQuery = await api.request('GET', '/meters?event_name=a%00b');
    expect([inQuery.status, inQuery.body.details?.field], inQuery.text).to.deep.equal([400, 'event_name']);
  });

  it('200 for a filter of a whole number by a fraction, and by more than it can be', async () => {
    const search = async (number: number) => {
      const filters = [{ field: 'sequence', operator: 'gt', data_type: 'number', value: { number } }];
      const { status, body } = await api.request('POST', '/prices/search', { body: { filters } });
      return [status, body.items?.length];
    };
    expect([await search(0.5), await search(1e20)]).to.deep.equal([
      [200, 1],
      [200, 0],
    ]);
  });

  it('keeps the last day of the calendar and the largest counts', async () => {
    const ends = { ...bodies.subscription(), end_date: '9999-12-31T23:59:59.999Z' };
    const subscription = await api.request('POST', '/subscriptions', { body: ends });
    expect(subscription.body.end_date, subscription.text).to.equal('9999-12-31T23:59:59.999Z');
    const plan = await api.request('POST', '/plans', { body: { name: 'Last', display_order: BEYOND_INT32 - 1 } });
    expect(plan.body.display_order).to.equal(BEYOND_INT32 - 1);
  });

  it('a list of ids is one parameter of its statement, and a longer one is refused by name', async () => {
    const ask = <Path extends string>(path: Path, body: Fields) => api.request('POST', path, { body });
    const most = [ids.customer, ...MANY.slice(0, 9_999)];
    const found = await ask('/customers/search', { customer_ids: most });
    expect([found.status, found.body.items.length]).to.deep.equal([200, 1]);
    for (const [path, field] of [
      ['/customers/search', 'customer_ids'],
      ['/plans/search', 'plan_ids'],
      ['/prices/search', 'price_ids'],
      ['/invoices/search', 'invoice_ids'],
    ] as const) {
      const { status, body } = await ask(path, { [field]: MANY });
      expect([status, body.details!.field], path).to.deep.equal([400, field]);
      const joined = await ask(path, { [field]: MANY.slice(0, 10_001).join() });
      expect([joined.status, joined.body.details!.field], path).to.deep.equal([400, field]);
    }
  });

  it('a question of our own with more ids than a statement has parameters is answered', async () => {
    const plans = await PlanModel.in(api.scope, api.services.postgres).whereIn('id', [ids.plan, ...MANY]);
    expect(plans.map(({ id }) => id)).to.deep.equal([ids.plan]);
    expect(await PlanModel.in(api.scope, api.services.postgres).whereIn('id', [])).to.deep.equal([]);
  });
});
