import { expect } from 'chai';
import type { Customer, Meter, Plan, Price, Subscription } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00Z';
const EQUAL_TIERS = [10, 10, null].map((up_to) => ({ up_to, unit_amount: '1' }));

describe('/subscriptions', () => {
  let api: TestApi;
  let customer: Customer;
  let meter: Meter;
  let plan: Plan;
  let seats: Price;
  let tokens: Price;

  before(async () => {
    api = await startTestApi({ now: NOW });
    customer = await make('/customers', { external_id: 'acme', name: 'Acme', timezone: 'Europe/Berlin' });
    meter = await make('/meters', {
      name: 'Tokens',
      event_name: 'tokens',
      aggregation: { type: 'SUM', field: 'n' },
      filters: [{ key: 'region', values: ['eu'] }],
    });
    plan = await make('/plans', { name: 'Pro' });
    seats = await make('/prices', fixed(plan.id, { amount: '20', display_name: 'Seats', min_quantity: '3' }));
    tokens = await make('/prices', usage(plan.id, { amount: '0.01' }));
  });
  after(() => api.stop());

  const make = async <Path extends string>(path: Path, body: unknown) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const fixed = (entity_id: string, fields: Record<string, unknown> = {}) => ({
    entity_type: 'PLAN',
    entity_id,
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    billing_period: 'MONTHLY',
    billing_cadence: 'RECURRING',
    invoice_cadence: 'ADVANCE',
    price_unit_type: 'FIAT',
    currency: 'usd',
    amount: '10',
    ...fields,
  });
  const usage = (entity_id: string, fields: Record<string, unknown> = {}) =>
    fixed(entity_id, { type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: meter.id, ...fields });
  const planWith = async (...prices: Record<string, unknown>[]) => {
    const made = await make('/plans', { name: 'Other' });
    for (const price of prices) await make('/prices', fixed(made.id, price));
    return made;
  };
  const body = (fields: Record<string, unknown> = {}) => ({
    customer_id: customer.id,
    plan_id: plan.id,
    currency: 'usd',
    billing_period: 'MONTHLY',
    ...fields,
  });
  const post = (fields: Record<string, unknown> = {}) => api.request('POST', '/subscriptions', { body: body(fields) });
  const create = async (fields: Record<string, unknown> = {}) => {
    const answer = await post(fields);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const get = async (id: string) => (await api.request('GET', `/subscriptions/${id}`)).body;
  const cancel = (id: string, request: Record<string, unknown>) =>
    api.request('POST', `/subscriptions/${id}/cancel`, { body: request });
  const period = ({ billing_anchor, current_period_start, current_period_end }: Subscription) => [
    billing_anchor,
    current_period_start,
    current_period_end,
  ];

  describe('201', () => {
    it('starts now, in the timezone of the customer, with the prices of the plan', async () => {
      const subscription = await create({ metadata: { team: 'a' } });
      expect(subscription.id).to.match(/^subs_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(subscription).to.include({
        customer_id: customer.id,
        plan_id: plan.id,
        subscription_status: 'active',
        subscription_type: 'STANDALONE',
        currency: 'usd',
        billing_cycle: 'anniversary',
        billing_cadence: 'RECURRING',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        timezone: 'Europe/Berlin',
        customer_timezone: 'Europe/Berlin',
        start_date: '2026-03-15T12:00:00Z',
        end_date: null,
        current_period_start: '2026-03-15T12:00:00Z',
        // Summer time begins on 29 March: the clock in Berlin stays.
        current_period_end: '2026-04-15T11:00:00Z',
        billing_anchor: '2026-03-15T12:00:00Z',
        collection_method: 'charge_automatically',
        payment_behavior: 'default_active',
        proration_behavior: 'none',
        cancel_at_period_end: false,
        version: 1,
        pause_status: 'none',
        status: 'published',
      });
      expect(subscription.metadata).to.deep.equal({ team: 'a' });
      expect(subscription.plan).to.include({ id: plan.id, name: 'Pro' });
      expect(subscription.customer).to.include({ id: customer.id, external_id: 'acme' });
    });

    it('copies each price as a line item: the minimum as the quantity of a fixed one, nothing for usage', async () => {
      const { id, line_items } = await create();
      expect(line_items).to.have.length(2);
      const [first, second] = line_items;
      expect(first).to.include({
        subscription_id: id,
        price_id: seats.id,
        price_type: 'FIXED',
        display_name: 'Seats',
        plan_display_name: 'Pro',
        entity_id: plan.id,
        entity_type: 'plan',
        quantity: '3',
        invoice_cadence: 'ADVANCE',
        start_date: '2026-03-15T12:00:00Z',
        end_date: null,
        trial_period: 0,
      });
      expect(second).to.include({ price_id: tokens.id, price_type: 'USAGE', quantity: '0', meter_id: meter.id });
      expect(second!.meter_display_name).to.equal('Tokens');
      expect(second!.price!.amount).to.equal('0.01');
    });

    it('opens with an invoice of what is charged in advance', async () => {
      const { latest_invoice } = await create();
      expect(latest_invoice).to.include({
        billing_reason: 'SUBSCRIPTION_CREATE',
        invoice_status: 'FINALIZED',
        total: '60',
      });
      expect(latest_invoice!.line_items!.map((line) => [line.price_id, line.amount])).to.deep.equal([[seats.id, '60']]);
    });

    const firstPeriods: [string, Record<string, unknown>, string, string][] = [
      ['a year', { billing_period: 'ANNUAL' }, '2026-03-15T12:00:00Z', '2027-03-15T12:00:00Z'],
      [
        'three quarters',
        { billing_period: 'quarterly', billing_period_count: 3 },
        '2026-03-15T12:00:00Z',
        '2026-12-15T12:00:00Z',
      ],
      [
        'ten days',
        { billing_period: 'DAILY', billing_period_count: 10 },
        '2026-03-15T12:00:00Z',
        '2026-03-25T12:00:00Z',
      ],
      ['a calendar month', { billing_cycle: 'calendar' }, '2026-04-01T00:00:00Z', '2026-04-01T00:00:00Z'],
      ['up to an anchor', { billing_anchor: '2026-01-20T00:00:00Z' }, '2026-01-20T00:00:00Z', '2026-03-20T00:00:00Z'],
      ['cut at its end', { end_date: '2026-03-20T00:00:00Z' }, '2026-03-15T12:00:00Z', '2026-03-20T00:00:00Z'],
    ];
    for (const [name, fields, anchor, end] of firstPeriods) {
      it(`the first period is ${name}`, async () => {
        const subscription = await create({ timezone: 'UTC', ...fields });
        expect(period(subscription)).to.deep.equal([anchor, '2026-03-15T12:00:00Z', end]);
      });
    }

    it('may start in the past and in the future', async () => {
      const past = await create({ start_date: '2026-01-31T00:00:00Z', timezone: 'UTC' });
      expect(past).to.include({ start_date: '2026-01-31T00:00:00Z', current_period_end: '2026-02-28T00:00:00Z' });
      expect(past.line_items[0]!.start_date).to.equal('2026-01-31T00:00:00Z');
      const future = await create({ start_date: '2026-05-01T00:00:00+02:00' });
      expect(future.start_date).to.equal('2026-04-30T22:00:00Z');
    });

    it('400 where more than 5,000 periods are over', async () => {
      const answer = await post({ start_date: '0001-01-01T00:00:00Z', billing_period: 'DAILY' });
      expect([answer.status, answer.body.details!.field]).to.deep.equal([400, 'start_date']);
    });

    it('a plan that is archived at the same time has no subscription, or stays', async () => {
      for (let round = 0; round < 3; round++) {
        const { body: plan } = await api.request('POST', '/plans', { body: { name: `race ${round}` } });
        const asked = Array.from({ length: 4 }, () => post({ plan_id: plan.id, timezone: 'UTC' }));
        const [gone, ...made] = await Promise.all([api.request('DELETE', `/plans/${plan.id}`), ...asked]);
        const isSold = made.some(({ status }) => status === 201);
        expect(gone.status, `${made.map(({ status }) => status)}`).to.equal(isSold ? 400 : 200);
      }
    });

    it('takes the customer by its external id, and the timezone by its older name', async () => {
      const subscription = await create({
        customer_id: undefined,
        external_customer_id: 'acme',
        customer_timezone: 'Asia/Tokyo',
      });
      expect(subscription).to.include({ customer_id: customer.id, timezone: 'Asia/Tokyo' });
    });

    it('an override is a price of this subscription, of the same lineage', async () => {
      const tiers = [
        { up_to: 100, unit_amount: '0.02' },
        { up_to: null, unit_amount: '0.005' },
      ];
      const subscription = await create({
        override_line_items: [
          { price_id: tokens.id, billing_model: 'TIERED', tier_mode: 'SLAB', tiers },
          { price_id: seats.id, quantity: '5' },
        ],
      });
      const [first, second] = subscription.line_items;
      expect(first).to.include({ price_id: seats.id, quantity: '5' });
      expect(second!.price_id).not.to.equal(tokens.id);
      expect(second!.price).to.include({
        entity_type: 'SUBSCRIPTION',
        entity_id: subscription.id,
        parent_price_id: tokens.id,
        billing_model: 'TIERED',
        meter_id: meter.id,
      });
      expect(subscription.latest_invoice!.total).to.equal('100');
    });

    it('extra line items come after those of the plan, with dates of their own', async () => {
      const other = await planWith();
      const extra = await make('/prices', fixed(other.id, { amount: '7' }));
      const line = { price_id: extra.id, quantity: 2, start_date: '2026-03-20T00:00:00Z', display_name: 'Support' };
      const { line_items } = await create({ line_items: [line] });
      expect(line_items).to.have.length(3);
      expect(line_items[2]).to.include({
        price_id: extra.id,
        quantity: '2',
        display_name: 'Support',
        start_date: '2026-03-20T00:00:00Z',
      });
    });

    it('leaves out prices of other currencies, expired ones and archived plans', async () => {
      const mixed = await planWith({ currency: 'eur' }, { amount: '5' });
      const gone = await make('/prices', fixed(mixed.id, { amount: '6' }));
      const end = await api.request('DELETE', `/prices/${gone.id}`, { body: {} });
      expect(end.status, end.text).to.equal(200);
      const { line_items } = await create({ plan_id: mixed.id, currency: 'USD' });
      expect(line_items.map((line) => line.price!.amount)).to.deep.equal(['5']);
    });

    it('a draft has no invoice until it is activated', async () => {
      const draft = await create({ subscription_status: 'DRAFT' });
      expect(draft).to.include({ subscription_status: 'draft', latest_invoice: null });
      const before = await api.request('POST', '/invoices/search', { body: { subscription_id: draft.id } });
      expect(before.body.items).to.deep.equal([]);
      const preview = await api.request('POST', '/invoices/preview', { body: { subscription_id: draft.id } });
      expect(preview.body).to.include({ subtotal: '60', id: '' });

      const activated = await api.request('POST', `/subscriptions/${draft.id}/activate`, {
        body: { start_date: '2026-03-10T00:00:00Z' },
      });
      expect(activated.status, activated.text).to.equal(200);
      expect(activated.body).to.include({ subscription_status: 'active', start_date: '2026-03-10T00:00:00Z' });
      expect(activated.body.line_items[0]!.start_date).to.equal('2026-03-10T00:00:00Z');
      const after = await api.request('POST', '/invoices/search', { body: { subscription_id: draft.id } });
      expect(after.body.items.map(({ total }) => total)).to.deep.equal(['60']);
      const again = await api.request('POST', `/subscriptions/${draft.id}/activate`, {
        body: { start_date: '2026-03-10T00:00:00Z' },
      });
      expect(again.status).to.equal(400);
    });

    it('waits for its opening invoice when the payment behavior says so', async () => {
      const waiting = await create({ payment_behavior: 'allow_incomplete' });
      expect(waiting.subscription_status).to.equal('incomplete');
      const paid = await api.request('PUT', `/invoices/${waiting.latest_invoice!.id}/payment`, {
        body: { payment_status: 'SUCCEEDED' },
      });
      expect(paid.status, paid.text).to.equal(200);
      expect((await get(waiting.id)).subscription_status).to.equal('active');
      const free = await planWith({ amount: '0' });
      const nothing = await create({ plan_id: free.id, payment_behavior: 'allow_incomplete' });
      expect(nothing.subscription_status).to.equal('active');
    });
  });

  describe('400', () => {
    const refused: [string, () => Record<string, unknown> | Promise<Record<string, unknown>>, RegExp, string][] = [
      [
        'an anchor with calendar billing',
        () => ({ billing_cycle: 'calendar', billing_anchor: NOW }),
        /billing_anchor/,
        'validation_error',
      ],
      [
        'days of trial with dates of trial',
        () => ({ trial_period_days: 7, trial_start: NOW, trial_end: '2026-03-22T12:00:00Z' }),
        /trial_period_days/,
        'validation_error',
      ],
      ['a negative trial', () => ({ trial_period_days: -1 }), /trial_period_days/, 'validation_error'],
      ['a start of trial without an end', () => ({ trial_start: NOW }), /trial_start/, 'validation_error'],
      [
        'a threshold below zero',
        () => ({ auto_invoice_threshold: '-1' }),
        /auto_invoice_threshold/,
        'validation_error',
      ],
      [
        'a threshold on a plan with fixed prices',
        () => ({ auto_invoice_threshold: '10' }),
        /auto_invoice_threshold/,
        'validation_error',
      ],
      ['an end before the start', () => ({ end_date: '2026-03-01T00:00:00Z' }), /end_date/, 'validation_error'],
      ['no customer', () => ({ customer_id: undefined }), /customer_id/, 'validation_error'],
      ['a count of zero', () => ({ billing_period_count: 0 }), /billing_period_count/, 'validation_error'],
      ['a one-time period', () => ({ billing_period: 'ONETIME' }), /billing_period/, 'validation_error'],
      ['a currency that is none', () => ({ currency: 'zzz' }), /currency/, 'validation_error'],
      ['a currency without a price', () => ({ currency: 'eur' }), /currency/, 'validation_error'],
      ['a timezone that is none', () => ({ timezone: 'Mars/Olympus' }), /timezone/, 'validation_error'],
      [
        'prorations from a past start',
        () => ({ proration_behavior: 'create_prorations', start_date: '2026-03-14T00:00:00Z' }),
        /start_date/,
        'validation_error',
      ],
      [
        'a pair of payment settings that cannot be',
        () => ({ collection_method: 'send_invoice', payment_behavior: 'error_if_incomplete' }),
        /payment_behavior/,
        'invalid_operation',
      ],
      [
        'an opening invoice that cannot be paid',
        () => ({ payment_behavior: 'error_if_incomplete' }),
        /error_if_incomplete/,
        'invalid_operation',
      ],
      [
        'an override of a strange price',
        () => ({ override_line_items: [{ price_id: 'price_no', amount: '1' }] }),
        /price_no/,
        'validation_error',
      ],
      [
        'an override of nothing',
        () => ({ override_line_items: [{ price_id: tokens.id }] }),
        /override_line_items/,
        'validation_error',
      ],
      [
        'two overrides of one price',
        () => ({ override_line_items: [1, 2].map(() => ({ price_id: tokens.id, amount: '1' })) }),
        /override_line_items\[1\]/,
        'validation_error',
      ],
      [
        'a quantity of usage',
        () => ({ override_line_items: [{ price_id: tokens.id, quantity: '4' }] }),
        /quantity/,
        'validation_error',
      ],
      [
        'a quantity below the minimum',
        () => ({ override_line_items: [{ price_id: seats.id, quantity: '2' }] }),
        /^override_line_items\[0\]\.quantity: /,
        'validation_error',
      ],
      [
        'an override that is no price',
        () => ({ override_line_items: [{ price_id: tokens.id, amount: '-1' }] }),
        /^override_line_items\[0\]\.amount: /,
        'validation_error',
      ],
      [
        'tiers of an override with one bound twice',
        () => ({
          override_line_items: [
            { price_id: tokens.id, billing_model: 'TIERED', tier_mode: 'SLAB', tiers: EQUAL_TIERS },
          ],
        }),
        /^override_line_items\[0\]\.tiers/,
        'validation_error',
      ],
      [
        'an override of a phase that is no price',
        () => ({
          phases: [
            { start_date: '2026-03-15T00:00:00Z', override_line_items: [{ price_id: tokens.id, amount: '-1' }] },
          ],
        }),
        /^phases\[0\]\.override_line_items\[0\]\.amount: /,
        'validation_error',
      ],
      [
        'a quantity of an extra line below the minimum',
        () => ({ line_items: [{ price_id: seats.id, quantity: '2' }] }),
        /^line_items\[0\]\.quantity: /,
        'validation_error',
      ],
      [
        'a trial that begins after the start',
        () => ({ trial_start: '2026-03-16T00:00:00Z', trial_end: '2026-03-20T00:00:00Z' }),
        /trial_start/,
        'validation_error',
      ],
      [
        'a trial that ends before the start',
        () => ({ trial_start: '2026-03-01T00:00:00Z', trial_end: '2026-03-15T00:00:00Z' }),
        /trial_end/,
        'validation_error',
      ],
      [
        'trials of a plan that do not agree',
        async () => ({ plan_id: (await planWith({ trial_period_days: 14 }, { trial_period_days: 7 })).id }),
        /trial_period_days/,
        'validation_error',
      ],
      [
        'a line of a phase that is not there yet',
        () => ({ line_items: [{ price_id: 'price_1', subscription_phase_id: 'phase_1' }] }),
        /line_items\[0\]\.subscription_phase_id/,
        'validation_error',
      ],
      [
        'a credit grant of a plan',
        () => ({ credit_grants: [{ name: 'x', credits: '1', cadence: 'ONETIME', scope: 'PLAN' }] }),
        /credit_grants\[0\]\.scope/,
        'validation_error',
      ],
      [
        'tax rates in another currency',
        () => ({ tax_rate_overrides: [{ tax_rate_code: 'x', currency: 'jpy' }] }),
        /tax_rate_overrides\[0\]\.currency/,
        'validation_error',
      ],
    ];
    for (const [name, fields, message, code] of refused) {
      it(name, async () => {
        const answer = await post(await fields());
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.code).to.equal(code);
        expect(answer.body.message).to.match(message);
      });
    }

    it('leaves nothing behind when the opening invoice is refused', async () => {
      const count = async () => (await api.request('GET', '/subscriptions?limit=1')).body.pagination.total;
      const before = await count();
      expect((await post({ payment_behavior: 'error_if_incomplete' })).status).to.equal(400);
      expect(await count()).to.equal(before);
    });

    it('empty and zero values of what is not supported ask for nothing', async () => {
      await create({
        coupons: [],
        addons: [],
        commitment_amount: '0',
        inheritance: {},
        trial_period_days: 0,
        phases: null,
      });
    });
  });

  it('401 without a key', async () => {
    expect((await api.request('GET', '/subscriptions', { key: null })).status).to.equal(401);
  });

  it('409 a lookup key twice, until the first is cancelled', async () => {
    const first = await create({ lookup_key: 'acme-pro' });
    expect((await post({ lookup_key: 'acme-pro' })).status).to.equal(409);
    expect((await cancel(first.id, { cancellation_type: 'immediate' })).status).to.equal(200);
    await create({ lookup_key: 'acme-pro' });
  });

  describe('404', () => {
    it('a plan, a customer or a price that does not exist', async () => {
      expect((await post({ plan_id: 'plan_no' })).status).to.equal(404);
      expect((await post({ customer_id: 'cust_no' })).status).to.equal(404);
      expect((await post({ customer_id: undefined, external_customer_id: 'nobody' })).status).to.equal(404);
      expect((await post({ line_items: [{ price_id: 'price_no' }] })).status).to.equal(404);
    });

    it("another tenant's subscription, plan and customer", async () => {
      const { id } = await create();
      const { key } = await api.otherTenant();
      for (const path of [`/subscriptions/${id}`, `/subscriptions/${id}/v2`]) {
        expect((await api.request('GET', path, { key })).status).to.equal(404);
      }
      expect((await api.request('PUT', `/subscriptions/${id}`, { key, body: { metadata: {} } })).status).to.equal(404);
      const stop = { cancellation_type: 'immediate' };
      expect((await api.request('POST', `/subscriptions/${id}/cancel`, { key, body: stop })).status).to.equal(404);
      expect((await api.request('POST', '/subscriptions', { key, body: body() })).status).to.equal(404);
      const seen = await api.request('POST', '/subscriptions/search', { key, body: {} });
      expect(seen.body.pagination.total).to.equal(0);
    });
  });

  describe('GET /subscriptions/:id/v2', () => {
    it('shows the parts that are asked for', async () => {
      const { id } = await create();
      const bare = (await api.request('GET', `/subscriptions/${id}/v2`)).body;
      expect(bare).to.include({ id, plan: null, customer: null, line_items: null, plan_prices_out_of_sync: false });
      const path = `/subscriptions/${id}/v2?expand=plan,customer,subscription_line_items.prices` as const;
      const full = (await api.request('GET', path)).body;
      expect(full.plan!.name).to.equal('Pro');
      expect(full.customer!.name).to.equal('Acme');
      expect(full.line_items[1]!.price!.id).to.equal(tokens.id);
      expect((await api.request('GET', `/subscriptions/${id}/v2?expand=moon`)).status).to.equal(400);
    });

    it('says when the plan has newer prices', async () => {
      const own = await planWith({ amount: '1' });
      const { id } = await create({ plan_id: own.id });
      const outOfSync = async () => (await api.request('GET', `/subscriptions/${id}/v2`)).body.plan_prices_out_of_sync;
      expect(await outOfSync()).to.equal(false);
      await make('/prices', fixed(own.id));
      expect(await outOfSync()).to.equal(true);
    });
  });

  describe('PUT /subscriptions/:id', () => {
    const put = (id: string, request: unknown) => api.request('PUT', `/subscriptions/${id}`, { body: request });

    it('replaces metadata and counts the version', async () => {
      const { id } = await create({ metadata: { a: '1', b: '2' } });
      const answer = await put(id, { metadata: { c: '3' } });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.include({ version: 2 });
      expect(answer.body.metadata).to.deep.equal({ c: '3' });
      for (const version of [0, 1])
        expect((await put(id, { metadata: {}, version })).body.code).to.equal('version_conflict');
      expect((await put(id, { metadata: {}, version: 2 })).body.version).to.equal(3);
    });

    it('cancels at the end of the period or on a date, and takes it back; what is so already changes nothing', async () => {
      const { id, current_period_end } = await create();
      const ending = await put(id, { cancel_at_period_end: true, status: 'active' });
      expect(ending.status, ending.text).to.equal(200);
      expect(ending.body).to.include({ cancel_at_period_end: true, cancel_at: current_period_end });
      const { cancel_at, version } = ending.body;
      const same = { cancel_at_period_end: true, cancel_at, version, parent_subscription_id: null };
      expect((await put(id, same)).body.version).to.equal(version);
      expect((await put(id, { cancel_at_period_end: false, version: 1 })).body.code).to.equal('version_conflict');
      const back = { cancel_at_period_end: false, cancel_at: null };
      expect((await put(id, back)).body).to.include(back);
      const onDate = await put(id, { cancel_at: '2026-04-01T00:00:00Z' });
      expect(onDate.body).to.include({ cancel_at: '2026-04-01T00:00:00Z', cancel_at_period_end: false });
    });

    it('has it invoiced with a parent', async () => {
      const parent = await create();
      const { id } = await create();
      const joined = await put(id, { parent_subscription_id: parent.id });
      expect(joined.status, joined.text).to.equal(200);
      expect(joined.body).to.include({
        parent_subscription_id: parent.id,
        subscription_type: 'grouped_invoicing',
      });
      expect((await put(id, { parent_subscription_id: parent.id, metadata: { a: '1' } })).status).to.equal(200);
    });

    it('400 for other states, dates that are over, parents that are none, and two things at once', async () => {
      const { id } = await create();
      const refused: [Record<string, unknown>, string | undefined][] = [
        [{ status: 'cancelled' }, 'status'],
        [{ subscription_status: 'draft' }, 'status'],
        [{ cancel_at: '2026-01-01T00:00:00Z' }, 'cancel_at'],
        [{ cancel_at_period_end: true, metadata: { a: '1' } }, 'metadata'],
        [{ cancel_at_period_end: true, parent_subscription_id: id }, 'parent_subscription_id'],
        [{ cancel_at_period_end: true, cancel_at: '2026-04-01T00:00:00Z' }, 'cancel_at'],
        [{ parent_subscription_id: id }, 'grouped_invoicing_params.child_subscription_ids'],
        [{ auto_invoice_threshold: '-1' }, 'auto_invoice_threshold'],
      ];
      for (const [request, field] of refused) {
        const answer = await put(id, request);
        expect([answer.status, answer.body.details?.field], JSON.stringify(request)).to.deep.equal([400, field]);
      }
      expect((await put(id, { parent_subscription_id: 'subs_1' })).status).to.equal(404);
    });
  });

  describe('search', () => {
    it('fixed words in filters are of any case; one that no subscription has is refused', async () => {
      const { id } = await create();
      const found = async (field: string, operator: string, value: Record<string, unknown>) => {
        const data_type = Object.keys(value)[0];
        const filters = [{ field, operator, data_type, value }];
        const search = { subscription_ids: [id], filters };
        const answer = await api.request('POST', '/subscriptions/search', { body: search });
        return answer.status === 200 ? answer.body.items.length : answer.body.details!.field;
      };
      expect(await found('subscription_status', 'eq', { string: 'Active' })).to.equal(1);
      expect(await found('subscription_type', 'eq', { string: 'standalone' })).to.equal(1);
      expect(await found('billing_period', 'in', { array: ['annual', 'monthly'] })).to.equal(1);
      expect(await found('collection_method', 'not_in', { array: ['CHARGE_AUTOMATICALLY'] })).to.equal(0);
      expect(await found('subscription_status', 'eq', { string: 'running' })).to.equal('filters');
      expect(await found('status', 'in', { array: ['published', 'gone'] })).to.equal('filters');
      expect(await found('timezone', 'eq', { string: 'europe/berlin' }), 'free text').to.equal(0);
    });

    it('finds by every filter', async () => {
      const other = await make('/customers', { external_id: 'globex' });
      const own = await planWith({ amount: '1', billing_period: 'ANNUAL' });
      const found = await create({
        customer_id: other.id,
        plan_id: own.id,
        billing_period: 'ANNUAL',
        metadata: { tier: 'gold' },
        end_date: '2026-09-01T00:00:00Z',
      });
      const filters: Record<string, unknown>[] = [
        { subscription_ids: [found.id] },
        { customer_id: other.id },
        { customer_ids: [other.id] },
        { external_customer_id: 'globex' },
        { plan_id: own.id, subscription_status: ['ACTIVE'] },
        { customer_id: other.id, subscription_type: ['standalone'], billing_cadence: ['recurring'] },
        { billing_period: ['ANNUAL'], customer_id: other.id },
        { customer_id: other.id, active_at: '2026-08-31T00:00:00Z' },
        { customer_id: other.id, effective_date_for_update: '2026-09-01T00:00:00Z' },
        { metadata: { tier: 'gold' } },
        { filters: [{ field: 'customer_id', operator: 'eq', data_type: 'string', value: { string: other.id } }] },
      ];
      for (const filter of filters) {
        const { body: page, text } = await api.request('POST', '/subscriptions/search', { body: filter });
        expect(
          page.items?.map(({ id }) => id),
          `${JSON.stringify(filter)}: ${text}`,
        ).to.deep.equal([found.id]);
      }
      for (const filter of [
        { customer_id: other.id, active_at: '2026-09-01T00:00:00Z' },
        { customer_id: other.id, active_at: '2026-03-01T00:00:00Z' },
        { customer_id: other.id, subscription_status: ['cancelled', 'draft'] },
        { customer_id: other.id, effective_date_for_update: '2026-08-31T00:00:00Z' },
        { external_customer_id: 'nobody' },
        { invoicing_customer_ids: [other.id] },
      ]) {
        const { body: page } = await api.request('POST', '/subscriptions/search', { body: filter });
        expect(page.items, JSON.stringify(filter)).to.deep.equal([]);
      }
    });

    it('lists by query, with line items when asked', async () => {
      const path = '/subscriptions?limit=2&subscription_status=active,incomplete';
      const bare = (await api.request('GET', path)).body;
      expect(bare.items).to.have.length(2);
      expect(bare.items[0]!.line_items).to.equal(null);
      const full = (await api.request('GET', `${path}&with_line_items=true&expand=plan`)).body;
      expect(full.items[0]!.line_items).not.to.have.length(0);
      expect(full.items[0]!.plan!.id).to.equal(full.items[0]!.plan_id);
    });

    it('searches line items across subscriptions', async () => {
      const { id, line_items } = await create();
      const search = async (filter: Record<string, unknown>) =>
        (await api.request('POST', '/subscriptions/lineitems/search', { body: { subscription_ids: [id], ...filter } }))
          .body;
      expect((await search({})).pagination.total).to.equal(2);
      expect((await search({ price_ids: [tokens.id], expand: ['prices'] })).items[0]!.price!.id).to.equal(tokens.id);
      expect((await search({ meter_ids: [meter.id] })).items[0]!.id).to.equal(line_items[1]!.id);
      expect((await search({ currencies: ['EUR'] })).items).to.deep.equal([]);
      expect((await cancel(id, { cancellation_type: 'immediate' })).status).to.equal(200);
      expect((await search({})).items).to.deep.equal([]);
      expect((await search({ active_filter: false })).pagination.total).to.equal(2);
    });
  });

  describe('POST /subscriptions/:id/cancel', () => {
    it('immediate ends it now', async () => {
      const { id } = await create();
      const answer = await cancel(id, { cancellation_type: 'immediate', reason: 'moved on' });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.include({
        subscription_id: id,
        status: 'cancelled',
        effective_date: NOW,
        reason: 'moved on',
        total_credit_amount: '0',
      });
      const ended = await get(id);
      expect(ended).to.include({ subscription_status: 'cancelled', end_date: '2026-03-15T12:00:00Z' });
      expect(ended.line_items[0]!.end_date).to.equal('2026-03-15T12:00:00Z');
    });

    it('immediate may be backdated into the running period', async () => {
      const { id } = await create({ start_date: '2026-03-01T00:00:00Z' });
      const answer = await cancel(id, { cancellation_type: 'immediate', cancel_at: '2026-03-10T00:00:00Z' });
      expect(answer.body.effective_date).to.equal('2026-03-10T00:00:00Z');
      expect(await get(id)).to.include({ end_date: '2026-03-10T00:00:00Z', cancelled_at: '2026-03-15T12:00:00Z' });
    });

    it('end_of_period and scheduled_date leave it active until then', async () => {
      const first = await create();
      const atEnd = await cancel(first.id, { cancellation_type: 'end_of_period' });
      expect(atEnd.body).to.include({ status: 'active', effective_date: '2026-04-15T11:00:00Z' });
      expect(await get(first.id)).to.include({ cancel_at: '2026-04-15T11:00:00Z', cancel_at_period_end: true });
      const second = await create();
      const onDate = await cancel(second.id, {
        cancellation_type: 'scheduled_date',
        cancel_at: '2026-03-20T12:00:00Z',
      });
      expect(onDate.body).to.include({ status: 'active', effective_date: '2026-03-20T12:00:00Z' });
      expect(await get(second.id)).to.include({ cancel_at: '2026-03-20T12:00:00Z', cancel_at_period_end: false });
      expect((await cancel(second.id, { cancellation_type: 'end_of_period' })).status).to.equal(400);
    });

    const refused: [string, Record<string, unknown>, RegExp][] = [
      [
        'immediate in the future',
        { cancellation_type: 'immediate', cancel_at: '2026-03-16T00:00:00Z' },
        /scheduled_date/,
      ],
      [
        'immediate before the running period',
        { cancellation_type: 'immediate', cancel_at: '2026-02-01T00:00:00Z' },
        /current period/,
      ],
      [
        'a scheduled date in the past',
        { cancellation_type: 'scheduled_date', cancel_at: '2026-03-14T00:00:00Z' },
        /cancel_at/,
      ],
      ['a scheduled date that is now', { cancellation_type: 'scheduled_date', cancel_at: NOW }, /cancel_at/],
      ['a scheduled date without a date', { cancellation_type: 'scheduled_date' }, /cancel_at/],
      ['no type', {}, /cancellation_type/],
    ];
    for (const [name, request, message] of refused) {
      it(`400 ${name}`, async () => {
        const { id } = await create();
        const answer = await cancel(id, request);
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.code).to.equal('validation_error');
        expect(answer.body.message).to.match(message);
        expect((await get(id)).version).to.equal(1);
      });
    }

    it('400 for what is cancelled already, and for a draft', async () => {
      const { id } = await create();
      await cancel(id, { cancellation_type: 'immediate' });
      const draft = await create({ subscription_status: 'draft' });
      for (const each of [id, draft.id]) {
        const answer = await cancel(each, { cancellation_type: 'immediate' });
        expect(answer.status).to.equal(400);
        expect(answer.body.code).to.equal('invalid_operation');
      }
    });
  });

  describe('POST /subscriptions/usage', () => {
    it('answers every usage line item of the running period', async () => {
      const { id, line_items } = await create();
      const answer = await api.request('POST', '/subscriptions/usage', { body: { subscription_id: id } });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.include({ amount: '0', currency: 'usd', display_amount: '$0.00', has_overage: false });
      expect(answer.body).to.include({ start_time: NOW, end_time: '2026-04-15T11:00:00Z' });
      expect(answer.body.charges).to.have.length(1);
      expect(answer.body.charges[0]).to.include({
        subscription_line_item_id: line_items[1]!.id,
        quantity: '0',
        amount: '0',
      });
      expect(answer.body.charges[0]!.filter_values).to.deep.equal({ region: ['eu'] });
    });

    it('400 for a range without length, 404 for no subscription', async () => {
      const { id } = await create();
      const range = { subscription_id: id, start_time: NOW, end_time: NOW };
      expect((await api.request('POST', '/subscriptions/usage', { body: range })).status).to.equal(400);
      expect(
        (await api.request('POST', '/subscriptions/usage', { body: { subscription_id: 'subs_no' } })).status,
      ).to.equal(404);
    });
  });
});
