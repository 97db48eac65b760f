/** Add-ons of subscriptions: attached, with their lines and what they grant, and detached. */
import { expect } from 'chai';
import type { Addon, Modification } from '../../support/answers.ts';
import { fixed, type PriceTerms, startWorld, usage, type World } from '../../support/world.ts';

type Fields = Record<string, unknown>;

describe('add-ons of subscriptions', () => {
  let world: World;
  const addons: Record<string, Addon> = {};

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Base', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' })]);
    await addon('Support', [fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'support' })]);
    await addon('Calls', [usage('calls', '0.01', { display_name: 'calls' }), fixed('10')], 'multiple_instance');
    await addon('Yearly', [fixed('365', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL' })]);
    await addon('Free', []);
  });
  after(() => world.stop());

  async function addon(name: string, prices: PriceTerms[], type = 'onetime') {
    addons[name] = await world.post('/addons', { name, lookup_key: name, type });
    for (const { meter, ...terms } of prices) {
      await world.post('/prices', {
        entity_type: 'ADDON',
        entity_id: addons[name].id,
        currency: 'usd',
        billing_period: 'MONTHLY',
        price_unit_type: 'FIAT',
        start_date: '2020-01-01T00:00:00Z',
        ...(meter ? { meter_id: world.id(`meter ${meter}`) } : {}),
        ...terms,
      });
    }
  }
  const of = (customer: string) => world.id(`subscription ${customer}`);
  const ask = async <Method extends string, Path extends string>(
    method: Method,
    path: Path,
    body: Fields,
    status = 200,
  ) => {
    const answer = await world.api.request(method, path, { body });
    expect(answer.status, answer.text).to.equal(status);
    return answer.body;
  };
  const attach = (customer: string, name: string, fields: Fields = {}, status = 200) =>
    ask(
      'POST',
      '/subscriptions/addon',
      { subscription_id: of(customer), addon_id: addons[name]!.id, ...fields },
      status,
    );
  const detach = (addon_association_id: string, fields: Fields = {}, status = 200) =>
    ask('DELETE', '/subscriptions/addon', { addon_association_id, ...fields }, status);
  const pricesOf = async (name: string) =>
    (await world.get(`/prices?entity_type=ADDON&entity_ids=${addons[name]!.id}&order=asc`)).items.map(
      ({ id }) => id,
    ) as [string, string];
  const held = (customer: string) => world.get(`/subscriptions/${of(customer)}/addons/associations`);

  it('an add-on is attached on the 10th and detached: it is held, and charged, to the end of the period', async () => {
    await world.on('2026-01-01', () => world.subscribe('acme', 'Base'));
    world.at('2026-01-11');
    const attached = await attach('acme', 'Support', { metadata: { reason: 'audit', level: 2 } });
    expect(attached.id).to.match(/^addon_assoc_/);
    expect(attached).to.deep.include({
      entity_type: 'subscription',
      entity_id: of('acme'),
      addon_id: addons.Support!.id,
      addon_status: 'active',
      start_date: '2026-01-11T00:00:00Z',
      end_date: null,
      metadata: { reason: 'audit', level: 2 },
    });
    expect(attached.addon!.name).to.equal('Support');
    expect(attached.invoice).to.include({ total: '42', billing_reason: 'SUBSCRIPTION_UPDATE' });
    const { line_items } = await world.subscription('acme');
    expect(line_items[1]).to.deep.include({
      entity_type: 'addon',
      entity_id: addons.Support!.id,
      addon_association_id: attached.id,
      plan_display_name: null,
    });
    expect((await held('acme')).map(({ id }) => id)).to.deep.equal([attached.id]);

    await world.on('2026-02-10', () => detach(attached.id, { reason: 'too dear' }));
    const [leaving] = await held('acme');
    expect(leaving).to.include({ end_date: '2026-03-01T00:00:00Z', addon_status: 'active' });
    expect(leaving).to.include({ cancellation_reason: 'too dear', cancelled_at: '2026-02-10T00:00:00Z' });
    expect((await detach(attached.id, {}, 400)).details!.field).to.equal('addon_association_id');
    await world.on('2026-03-01');
    expect(await held('acme')).to.deep.equal([]);
    await world.on('2026-04-01');
    expect(await world.statements('acme')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 31\n  base 2026-01-01..2026-02-01: 1 = 31',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2026-02-01 = 42\n  support 2026-01-11..2026-02-01: 1 = 42',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 93\n' +
        '  base 2026-02-01..2026-03-01: 1 = 31\n  support 2026-02-01..2026-03-01: 1 = 62',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 31\n  base 2026-03-01..2026-04-01: 1 = 31',
      'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 31\n  base 2026-04-01..2026-05-01: 1 = 31',
    ]);
  });

  it('one with an end of its own, one for a period, and one by the year', async () => {
    await world.on('2026-01-01', () => world.subscribe('ends', 'Base'));
    await world.on(
      '2026-01-11',
      () => attach('ends', 'Support', { end_date: '2026-02-15T00:00:00Z' }),
      () => attach('ends', 'Calls', { cadence: 'onetime', quantity: 3 }),
      () => attach('ends', 'Yearly'),
    );
    expect((await held('ends')).map(({ end_date }) => end_date)).to.deep.equal([
      '2026-02-15T00:00:00Z',
      '2026-02-01T00:00:00Z',
      null,
    ]);
    await world.on('2026-01-20', () => world.use('ends', 'calls', 100));
    await world.on('2026-03-01');
    expect((await world.statements('ends')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2026-02-01 = 42\n  support 2026-01-11..2026-02-01: 1 = 42',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2027-01-11 = 365\n  Yearly 2026-01-11..2027-01-11: 1 = 365',
      // 21 of 31 days of three times 10, in arrears; half of February.
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 83.32\n' +
        '  base 2026-02-01..2026-03-01: 1 = 31\n  support 2026-02-01..2026-02-15: 1 = 31\n' +
        '  calls 2026-01-11..2026-02-01: 100 = 1\n  Calls 2026-01-11..2026-02-01: 3 = 20.32',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 31\n  base 2026-03-01..2026-04-01: 1 = 31',
    ]);
  });

  it('an add-on that is taken away inside a period is credited where the request asks for that', async () => {
    await world.on('2026-01-01', () => world.subscribe('credited', 'Base'));
    const one = await attach('credited', 'Support');
    await world.on('2026-01-16', () =>
      detach(one.id, { effective_date: '2026-01-16T00:00:00Z', proration_behavior: 'create_prorations' }),
    );
    expect((await world.statements('credited')).at(-1)).to.equal(
      'SUBSCRIPTION_UPDATE SKIPPED 2026-01-16..2026-02-01 = 0\n  support (unused time) 2026-01-16..2026-02-01: 1 = -32',
    );
    const kept = await attach('credited', 'Support');
    await world.on('2026-01-21', () => detach(kept.id, { effective_date: '2026-01-21T00:00:00Z' }));
    expect(await world.statements('credited')).to.have.length(4);
  });

  it('without proration it is charged from the next period on, with prices of its own', async () => {
    await world.on('2026-01-01', () => world.subscribe('own', 'Base'));
    const { items } = await world.get(`/prices?entity_type=ADDON&entity_ids=${addons.Support!.id}`);
    const override_line_items = [{ price_id: items[0]!.id, amount: '20', quantity: '2' }];
    await world.on('2026-01-11', () => attach('own', 'Support', { proration_behavior: 'none', override_line_items }));
    await world.on('2026-02-01');
    expect((await world.statements('own')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 71\n' +
        '  base 2026-02-01..2026-03-01: 1 = 31\n  support 2026-02-01..2026-03-01: 2 = 40',
    ]);
  });

  it('comes with a new subscription, and is on its opening invoice', async () => {
    world.at('2026-01-01');
    const made = await world.subscribe('opening', 'Base', {
      addons: [{ addon_id: addons.Support!.id }, { addon_id: addons.Calls!.id, quantity: 2 }],
    });
    expect(made.line_items.map((line) => [line.display_name, line.quantity])).to.deep.equal([
      ['base', '1'],
      ['support', '1'],
      ['calls', '0'],
      ['Calls', '2'],
    ]);
    expect(made.latest_invoice!.total).to.equal('93');
    expect(await held('opening')).to.have.length(2);
    const past = await world.subscribe('past', 'Base', {
      start_date: '2025-12-11T00:00:00Z',
      addons: [{ addon_id: addons.Support!.id }],
    });
    expect(past.line_items[1]!.start_date).to.equal('2025-12-11T00:00:00Z');
  });

  it('moves with a draft that begins later', async () => {
    await world.on('2026-01-01', () =>
      world.subscribe('draft', 'Base', {
        subscription_status: 'draft',
        addons: [{ addon_id: addons.Support!.id }, { addon_id: addons.Calls!.id, cadence: 'onetime' }],
      }),
    );
    await ask('POST', `/subscriptions/${of('draft')}/activate`, { start_date: '2026-03-15T00:00:00Z' });
    const lives = (await held('draft')).map(({ start_date, end_date }) => [start_date, end_date]);
    const [start, end] = ['2026-03-15T00:00:00Z', '2026-04-15T00:00:00Z'];
    expect(lives).to.deep.equal([
      [start, null],
      [start, end],
    ]);
    const { line_items } = await world.subscription('draft');
    expect(line_items.map(({ start_date, end_date }) => [start_date, end_date])).to.deep.equal([
      [start, null],
      [start, null],
      [start, end],
      [start, end],
    ]);
  });

  it('grants what it grants as often as it is held', async () => {
    const feature = await world.post('/features', {
      name: 'Seats',
      lookup_key: 'seats',
      type: 'metered',
      meter_id: world.id('meter calls'),
    });
    const of_feature = { feature_id: feature.id, feature_type: 'metered', usage_limit: 5 };
    await world.post('/entitlements', { ...of_feature, entity_type: 'ADDON', entity_id: addons.Calls!.id });
    const plan = await world.plan('Granting', [fixed('1')]);
    await world.on('2026-01-01', () => world.subscribe('granted', 'Granting'));
    await attach('granted', 'Calls', { quantity: 3 });
    await attach('granted', 'Calls');
    const { features } = await world.get(`/subscriptions/${of('granted')}/entitlements`);
    expect(features[0]!.entitlement.usage_limit).to.equal(20);
    expect(features[0]!.sources.map(({ quantity }) => quantity)).to.deep.equal([3, 1]);
    const path = `/subscriptions?subscription_ids=${of('granted')},${of('own')}&expand=entitlements` as const;
    const { items } = await world.get(path);
    expect(items.map(({ entitlements }) => entitlements)).to.have.deep.members([features, []]);
    const lines = { subscription_ids: [of('granted')], expand: 'prices.addons', price_ids: [], entity_type: 'addon' };
    const [line] = (await ask('POST', '/subscriptions/lineitems/search', lines)).items;
    expect(line!.price!.addon!.name).to.equal('Calls');

    await world.post('/entitlements', {
      ...of_feature,
      plan_id: plan.id,
      usage_reset_period: 'DAILY',
    });
    expect((await attach('granted', 'Calls', {}, 400)).details!.field).to.equal('addon_id');
  });

  it('is not carried to a plan that counts what it grants in other periods', async () => {
    const feature = await world.post('/features', {
      name: 'Carried',
      type: 'metered',
      meter_id: world.id('meter calls'),
    });
    const grant = (fields: Fields) =>
      world.post('/entitlements', { feature_id: feature.id, feature_type: 'metered', usage_limit: 10, ...fields });
    await world.plan('By the day', [fixed('1')]);
    await grant({ plan_id: world.id('plan By the day'), usage_reset_period: 'DAILY' });
    await addon('Monthly', [fixed('5')]);
    await grant({ entity_type: 'ADDON', entity_id: addons.Monthly!.id, usage_reset_period: 'MONTHLY' });
    await world.subscribe('carrier', 'Base');
    await attach('carrier', 'Monthly');
    const change = (fields: Fields = {}) =>
      world.api.request('POST', `/subscriptions/${of('carrier')}/change/v2/preview`, {
        body: { target_plan_id: world.id('plan By the day'), proration_behavior: 'none', ...fields },
      });
    const refused = await change();
    expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'target_plan_id']);
    const dropped = await change({ entity_policies: { addons: { default_behaviour: 'drop' } } });
    expect(dropped.status, dropped.text).to.equal(200);
  });

  it('is attached and detached by a modification, whose preview says what is then done', async () => {
    await world.on('2026-01-01', () => world.subscribe('modified', 'Base'));
    world.at('2026-01-11');
    const modify = (what: string, addon_params: Fields, status = 200) =>
      ask('POST', `/subscriptions/${of('modified')}/modify/${what}`, { type: 'addon', addon_params }, status);
    const said = ({ changed_resources: { line_items, invoices } }: Modification) => ({
      lines: line_items.map(({ change_action, price_id, start_date, end_date }) => [
        change_action,
        price_id,
        start_date,
        end_date,
      ]),
      invoices: invoices.map(({ action, invoice }) => [
        action,
        invoice!.total,
        invoice!.line_items!.map(({ amount, period_start }) => [amount, period_start]),
      ]),
    });
    const adding = { action: 'add', add: { addon_id: addons.Support!.id } };
    const preview = await modify('preview', adding);
    expect(await held('modified')).to.deep.equal([]);
    expect(said(await modify('execute', adding))).to.deep.equal(said(preview));
    expect(said(preview).invoices[0]).to.deep.include.members(['created', '42']);
    const { id } = (await held('modified'))[0]!;
    const remove = {
      addon_association_id: id,
      effective_date: '2026-01-21T00:00:00Z',
      proration_behavior: 'create_prorations',
    };
    const removing = { action: 'remove', remove };
    const credit = await modify('preview', removing);
    expect(said(credit).invoices[0]![2]).to.deep.equal([['-22', '2026-01-21T00:00:00Z']]);
    expect(said(await modify('execute', removing))).to.deep.equal(said(credit));
    expect((await modify('preview', { action: 'add', remove }, 400)).details!.field).to.equal('addon_params.remove');
    expect((await modify('preview', { action: 'add' }, 400)).details!.field).to.equal('addon_params.add');
  });

  it('its usage lines are committed to what the request says; a subscription that is committed as a whole refuses', async () => {
    await world.on('2026-01-01', () => world.subscribe('committed', 'Base'));
    const [metered, flat] = await pricesOf('Calls');
    const stated = { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true };
    const line_item_commitments = { [metered]: stated };
    await attach('committed', 'Calls', { line_item_commitments });
    const { line_items } = await world.subscription('committed');
    expect(line_items.find(({ price_id }) => price_id === metered)).to.deep.include({
      entity_type: 'addon',
      commitment_amount: '100',
      commitment_type: 'amount',
      commitment_overage_factor: '1.5',
      commitment_true_up_enabled: true,
    });
    await world.on('2026-02-01');
    const lines = (await world.invoices('committed')).flatMap((invoice) => invoice.line_items);
    expect(lines.find(({ price_id }) => price_id === metered)).to.deep.include({
      quantity: '0',
      amount: '100',
    });
    const of_fixed = { line_item_commitments: { [flat]: stated } };
    const field = async (customer: string, fields: Fields) =>
      (await attach(customer, 'Calls', fields, 400)).details!.field;
    expect(await field('committed', of_fixed)).to.equal(`line_item_commitments.${flat}.commitment_amount`);
    const whole = { line_items: [{ price_id: metered }], commitment_amount: '50' };
    await world.subscribe('whole', 'Base', whole);
    expect(await field('whole', { line_item_commitments })).to.equal(`line_item_commitments.${metered}`);
    const begun = await world.subscribe('begun committed', 'Base', {
      addons: [{ addon_id: addons.Calls!.id, line_item_commitments }],
    });
    expect(begun.line_items.map((one) => one.commitment_amount)).to.deep.equal([null, '100', null]);
  });

  const refused: [string, string, Fields, number, string][] = [
    ['an end before its start', 'Free', { end_date: '2026-01-01T00:00:00Z' }, 400, 'end_date'],
    ['a start that is invoiced', 'Free', { start_date: '2025-01-01T00:00:00Z' }, 400, 'start_date'],
    ['no quantity', 'Free', { quantity: 0 }, 400, 'quantity'],
    [
      'a commitment of a price that it does not have',
      'Calls',
      { line_item_commitments: { price_1: { commitment_amount: '1' } } },
      400,
      'line_item_commitments.price_1',
    ],
    [
      'a price of others',
      'Calls',
      { override_line_items: [{ price_id: 'price_1', amount: '1' }] },
      400,
      'override_line_items[0].price_id',
    ],
  ];
  describe('refuses', () => {
    before(() => world.on('2026-01-01', () => world.subscribe('refused', 'Base')));
    for (const [name, which, fields, status, field] of refused)
      it(name, async () => {
        expect((await attach('refused', which, fields, status)).details!.field).to.equal(field);
      });

    it('one of type onetime twice, an add-on without a price in the currency, and one that is archived', async () => {
      await attach('refused', 'Free');
      expect((await attach('refused', 'Free', {}, 409)).code).to.equal('already_exists');
      const body = { entity_type: 'ADDON', currency: 'eur', billing_period: 'MONTHLY', price_unit_type: 'FIAT' };
      await addon('Euro', []);
      await world.post('/prices', { ...body, ...fixed('1'), entity_id: addons.Euro!.id });
      expect((await attach('refused', 'Euro', {}, 400)).details!.field).to.equal('currency');
      await ask('DELETE', `/addons/${addons.Euro!.id}`, {});
      await attach('refused', 'Euro', {}, 404);
      await ask('DELETE', `/addons/${addons.Free!.id}`, {}, 400);
    });

    it('but not one of type onetime that begins where the one before it ends', async () => {
      await addon('Once', []);
      await attach('refused', 'Once', { end_date: '2026-01-10T00:00:00Z' });
      await attach('refused', 'Once', { start_date: '2026-01-09T00:00:00Z' }, 409);
      await attach('refused', 'Once', { start_date: '2026-01-10T00:00:00Z' });
    });

    it('to detach outside of the running period', async () => {
      const { id } = await attach('refused', 'Calls');
      const effective_date = '2026-03-01T00:00:00Z';
      expect((await detach(id, { effective_date }, 400)).details!.field).to.equal('effective_date');
    });

    it('401, 403, and 404 for another tenant', async () => {
      const { id } = await attach('refused', 'Calls');
      const reader = await world.api.keyWithRoles(['event_reader']);
      const { key } = await world.api.otherTenant();
      const requests: [string, string, Fields | undefined, number][] = [
        ['POST', '/subscriptions/addon', { subscription_id: of('refused'), addon_id: addons.Calls!.id }, 403],
        ['DELETE', '/subscriptions/addon', { addon_association_id: id }, 403],
        ['GET', `/subscriptions/${of('refused')}/addons/associations`, undefined, 403],
      ];
      for (const [method, path, body, forbidden] of requests) {
        const status = async (given: string | null) =>
          (await world.api.request(method, path, { ...(body ? { body } : {}), key: given })).status;
        expect([await status(null), await status(reader), await status(key)], path).to.deep.equal([
          401,
          forbidden,
          404,
        ]);
      }
    });
  });

  it('an add-on is archived once the subscriptions that have it are over', async () => {
    await addon('Gone', []);
    await world.on('2026-01-01', () => world.subscribe('gone', 'Base'));
    await attach('gone', 'Gone');
    await ask('DELETE', `/addons/${addons.Gone!.id}`, {}, 400);
    await world.cancel('gone');
    expect((await held('gone')).map(({ addon_status }) => addon_status)).to.deep.equal(['cancelled']);
    await ask('DELETE', `/addons/${addons.Gone!.id}`, {});
  });
});
