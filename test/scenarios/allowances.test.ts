/** What entitlements make free, from preview to final and at every door (docs/rules/entitlements.md, "What is free"). */
import { expect } from 'chai';
import { provenBy, check as verified } from '../support/verifier.ts';
import { startWorld, summarizeInvoice, tiers, usage, type World } from '../support/world.ts';

const at = (day: string) => `2026-${day}T00:00:00Z`;

describe('scenario: free units', () => {
  let world: World;
  const previews: Record<string, ReturnType<typeof summarizeInvoice>> = {};

  before(async () => {
    world = await startWorld();
    const calls = await world.meter('calls');
    const cpu = await world.meter('cpu', { type: 'SUM', field: 'n', bucket_size: 'DAY' });
    const feature = await world.post('/features', { name: 'Calls', type: 'metered', meter_id: calls.id });
    const cpuFeature = await world.post('/features', { name: 'Cpu', type: 'metered', meter_id: cpu.id });
    const grant = (plan: string, fields: object) =>
      world.post('/entitlements', {
        entity_type: 'PLAN',
        entity_id: world.id(`plan ${plan}`),
        feature_id: feature.id,
        feature_type: 'metered',
        ...fields,
      });
    const slabs = tiers(
      'calls',
      [
        [10, '3'],
        [null, '1'],
      ],
      { display_name: 'calls' },
    );
    for (const name of ['Period', 'Daily', 'Never', 'Unlimited']) await world.plan(name, [slabs]);
    await world.plan('Cpu', [usage('cpu', '1', { display_name: 'cpu' })]);
    await grant('Period', { usage_limit: 50 });
    await grant('Daily', { usage_limit: 5, usage_reset_period: 'DAILY' });
    await grant('Never', { usage_limit: 50, usage_reset_period: 'NEVER' });
    await grant('Unlimited', {});
    await grant('Cpu', { usage_limit: 12, feature_id: cpuFeature.id });
  });
  after(() => world.stop());

  // The latest dates come first: what goes on is billed by every later date of another test.
  it('limits beside each other, and beside a grant, count what was charged, at every door', async () => {
    const { feature_id } = (await world.get(`/entitlements?plan_ids=${world.id('plan Never')}`)).items[0]!;
    const daily: Record<string, object> = {
      Limits: { usage_limit: 20, usage_reset_period: 'DAILY' },
      Grant: { grant_measure: 'quantity', grant_quota: '20', grant_duration_value: 1, grant_duration_unit: 'day' },
    };
    const names = Object.keys(daily);
    const grant = (entity_type: string, entity_id: string, fields: object | undefined) =>
      world.post('/entitlements', { entity_type, entity_id, feature_id, feature_type: 'metered', ...fields });
    for (const name of names) {
      await world.plan(name, [usage('calls', '1', { display_name: 'calls' })]);
      await grant('PLAN', world.id(`plan ${name}`), daily[name]);
    }
    await world.on('2026-10-01');
    for (const name of names) {
      const { id } = await world.subscribe(name, name);
      await grant('SUBSCRIPTION', id, { usage_limit: 30, usage_reset_period: 'MONTHLY' });
      await world.send([
        world.event(name, 'calls', { n: 40, at: at('10-02') }),
        world.event(name, 'calls', { n: 10, at: at('10-03') }),
      ]);
    }
    await world.waitForPipeline();
    world.at('2026-10-20');
    for (const name of names) {
      const asked = { external_customer_id: name, feature_id, quantity: '1' };
      expect((await world.post('/entitlements/check', asked)).allowed, `check of ${name}`).to.equal(false);
      const { charges } = await world.post('/subscriptions/usage', {
        subscription_id: world.id(`subscription ${name}`),
      });
      const range = { start_time: at('10-01'), end_time: at('11-01'), external_customer_id: name };
      const { total_cost } = await world.post('/events/analytics', range);
      const { total } = await world.preview(name);
      expect([charges[0]!.amount, total_cost, total], name).to.deep.equal(['30', '30', '30']);
    }
    await world.on('2026-11-01');
    await world.finalize();
    for (const name of names) {
      const [invoice] = await world.invoices(name);
      expect(invoice!.total, name).to.equal('30');
      const proven = await provenBy(world.api, invoice!.id);
      expect((await verified(proven)).differences, name).to.deep.equal([]);
      const proof = structuredClone(proven.proof);
      const [part] = proof.lines[0]!.line.computed_from!.allowance_parts!.slice(-1);
      part!.used = '0.5';
      expect((await verified({ ...proven, proof })).differences, name).to.not.deep.equal([]);
    }
  });

  it('what comes late before a line took the place of another has used units that were free to it', async () => {
    await world.plan('Once', [usage('calls', '1', { display_name: 'calls' })]);
    const limit = { usage_limit: 50, usage_reset_period: 'NEVER', entity_id: world.id('plan Once') };
    const { feature_id } = (await world.get(`/entitlements?plan_ids=${world.id('plan Never')}`)).items[0]!;
    await world.post('/entitlements', { ...limit, entity_type: 'PLAN', feature_id, feature_type: 'metered' });
    await world.on('2026-05-01', () => world.subscribe('Changed', 'Once'));
    await world.on('2026-06-01');
    const { id } = (await world.subscription('Changed')).line_items[0]!;
    const body = { amount: '2', effective_from: at('06-01') };
    const changed = await world.api.request('PUT', `/subscriptions/lineitems/${id}`, { body });
    expect(changed.status, changed.text).to.equal(200);
    await world.send(['05-10', '06-10', '07-10'].map((day) => world.event('Changed', 'calls', { n: 20, at: at(day) })));
    await world.on('2026-08-01');
    await world.finalize();
    await world.send([world.event('Changed', 'calls', { n: 15, at: at('05-11') })]);
    await world.on('2026-09-01');
    const lines = (await world.invoices('Changed')).flatMap(({ line_items }) => line_items);
    const said = lines.map(({ display_name, quantity, amount }) => `${display_name}: ${quantity} = ${amount}`);
    expect(said).to.deep.equal([
      'calls: 0 = 0',
      'calls: 0 = 0',
      'calls: 10 = 20',
      'calls: 0 = 0',
      'calls (late events): 10 = 20',
      'calls (late events): 5 = 10',
    ]);
  });

  it('behind a trial the limit begins anew with its share of the month of the calendar, at every door', async () => {
    const trial = { billing_cycle: 'calendar', trial_period_days: 9 };
    await world.on('2026-04-02', () => world.subscribe('Tried', 'Period', trial));
    // The trial ends on 11 April: 20 of 30 days, 33 of 50 units.
    await world.send([
      world.event('Tried', 'calls', { n: 45, at: at('04-05') }),
      world.event('Tried', 'calls', { n: 40, at: at('04-15') }),
    ]);
    await world.on('2026-04-20');
    const { charges } = await world.post('/subscriptions/usage', { subscription_id: world.id('subscription Tried') });
    const { features } = await world.get(`/customers/usage?customer_id=${world.id('customer Tried')}`);
    const range = { start_time: at('04-11'), end_time: at('05-01'), external_customer_id: 'Tried' };
    const { items } = await world.post('/events/analytics', range);
    const [feature] = features;
    expect([charges[0]!.quantity, charges[0]!.amount, items[0]!.total_cost]).to.deep.equal(['7', '21', '21']);
    expect([String(feature!.total_limit), String(feature!.current_usage)]).to.deep.equal(['33', '40']);
    expect((await world.preview('Tried')).total).to.equal('21');
  });

  it('a short first period has its share of the limit, at every door, and the next one all of it', async () => {
    const calendar = { billing_cycle: 'calendar' };
    await world.on('2026-03-11', () => world.subscribe('Short', 'Period', calendar));
    // 21 of 31 days: 34 of 50 units.
    await world.send([
      world.event('Short', 'calls', { n: 40, at: at('03-15') }),
      world.event('Short', 'calls', { n: 55, at: at('04-15') }),
    ]);
    await world.on('2026-03-20');
    const { charges } = await world.post('/subscriptions/usage', { subscription_id: world.id('subscription Short') });
    const { features } = await world.get(`/customers/usage?customer_id=${world.id('customer Short')}`);
    const range = { start_time: at('03-11'), end_time: at('04-01'), external_customer_id: 'Short' };
    const { items } = await world.post('/events/analytics', range);
    const preview = (await world.preview('Short')).total;
    const doors = [
      charges[0]!.quantity,
      charges[0]!.amount,
      String(features[0]!.total_limit),
      items[0]!.total_cost,
      preview,
    ];
    expect(doors).to.deep.equal(['6', '18', '34', '18', '18']);
    await world.on('2026-04-01');
    await world.finalize();
    await world.send([world.event('Short', 'calls', { n: 2, at: at('03-16') })]);
    await world.on('2026-05-01');
    const lines = (await world.invoices('Short')).flatMap(({ line_items }) => line_items);
    expect(lines.map(({ quantity, amount }) => [quantity, amount])).to.deep.equal([
      ['6', '18'],
      ['5', '15'],
      ['2', '6'],
    ]);
  });

  describe('of five plans from January on', () => {
    before(async () => {
      await world.on('2026-01-01');
      for (const name of ['Period', 'Daily', 'Never', 'Unlimited', 'Cpu']) await world.subscribe(name, name);
      for (const name of ['Period', 'Daily', 'Never', 'Unlimited'])
        await world.send([
          world.event(name, 'calls', { n: 40, at: at('01-10') }),
          world.event(name, 'calls', { n: 25, at: at('01-11') }),
          world.event(name, 'calls', { n: 20, at: at('02-10') }),
        ]);
      await world.send([10, 7].map((n, day) => world.event('Cpu', 'cpu', { n, at: at(`01-1${day}`) })));
      await world.on('2026-01-31');
      for (const name of ['Period', 'Daily', 'Never', 'Unlimited', 'Cpu'])
        previews[name] = summarizeInvoice(await world.preview(name));
    });

    it('at the doors of the running period', async () => {
      const doors: Record<string, [string, string]> = {};
      const range = { start_time: at('01-01'), end_time: at('02-01'), external_customer_id: 'Period' };
      const { items } = await world.post('/events/analytics', range);
      doors.analytics = [items[0]!.total_usage, items[0]!.total_cost!];
      const { charges } = await world.post('/subscriptions/usage', {
        subscription_id: world.id('subscription Period'),
      });
      doors.usage = [charges[0]!.quantity, charges[0]!.amount];
      const { items: points } = await world.post('/events/analytics', { ...range, window_size: 'DAY' });
      expect(points[0]!.points!.map(({ cost }) => cost)).to.deep.equal(['0', '35']); // 15 units of the second day
      expect(doors).to.deep.equal({ analytics: ['65', '35'], usage: ['15', '35'] });
    });

    it('on invoices: in each period, each day, once for ever, without end, of windows', async () => {
      await world.on('2026-02-01');
      for (const [name, said] of Object.entries(previews)) {
        const [draft] = await world.invoices(name);
        expect(summarizeInvoice(draft!), name).to.deep.equal(said);
      }
      await world.finalize();
      await world.send([world.event('Never', 'calls', { n: 5, at: at('01-20') })]); // 5 more units, at 1 each
      await world.on('2026-03-01');
      const said = async (name: string) =>
        (await world.invoices(name)).flatMap(({ line_items }) =>
          line_items.map((line) => [line.quantity, line.adjusted_entitlement_quantity, line.amount]),
        );
      const unlimited = await said('Unlimited');
      expect({
        period: await said('Period'),
        daily: await said('Daily'),
        never: await said('Never'),
        unlimited,
        cpu: (await said('Cpu'))[0],
      }).to.deep.equal({
        period: [
          ['15', '50', '35'],
          ['0', '20', '0'],
        ],
        daily: [
          ['55', '10', '75'],
          ['15', '5', '35'],
        ], // 35 + 20; 15
        never: [
          ['15', '50', '35'],
          ['20', '0', '40'],
          ['5', null, '5'],
        ],
        unlimited: [
          ['0', '65', '0'],
          ['0', '20', '0'],
        ],
        cpu: ['5', '12', '5'],
      });
    });
  });
});
