/** A plan changes its prices, and its subscriptions take them over: as a workflow, once, and without charging twice. */
import { expect } from 'chai';
import { syncSubscription, trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
import type { Price } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('POST /plans/:id/sync/subscriptions', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
  });
  after(() => world.stop());

  const pathOf = (plan: string) => `/plans/${world.id(`plan ${plan}`)}/sync/subscriptions` as const;
  const attempt = (signal = AbortSignal.timeout(60_000)) => ({
    attempt: 1,
    is_last: false,
    clock: () => world.now,
    signal,
    timeout_ms: 60_000,
  });
  const ask = async (plan: string) => {
    const answer = await world.api.request('POST', pathOf(plan));
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  /** What the scheduler does with the job. */
  const sync = async <Path extends string>(plan: Path) => {
    const place = { ...world.api.scope, ...(await ask(plan)) };
    expect(await trySync(world.api.services, place, attempt())).to.equal('completed');
    const run = await world.api.services.postgres('workflow_runs').where('id', place.workflow_id).first();
    return run.result;
  };
  const lines = async (customer: string) => {
    const { line_items } = await world.subscription(customer);
    const shown = line_items.map((line) => {
      const span = `${line.start_date.slice(0, 10)}..${line.end_date?.slice(0, 10) ?? ''}`;
      return `${line.display_name} ${line.quantity} ${span}`;
    });
    return shown.sort();
  };
  const isBehind = async (customer: string) =>
    (await world.get(`/subscriptions/${world.id(`subscription ${customer}`)}/v2`)).plan_prices_out_of_sync;
  const changed = async (price: Price, fields: object) => {
    const answer = await world.api.request('PUT', `/prices/${price.id}`, { body: fields });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };

  it('what starts later is not paid yet: it changes with the price, before and after its start', async () => {
    await world.on('2025-11-01');
    await world.plan('Later', []);
    const base = await world.price('Later', fixed('30', { invoice_cadence: 'ADVANCE', display_name: 'Base' }));
    await world.subscribe('later', 'Later', { start_date: '2025-12-01T00:00:00Z' });
    await changed(base, { amount: '60', effective_from: '2025-12-16T00:00:00Z' });
    await world.price('Later', fixed('8', { invoice_cadence: 'ADVANCE', display_name: 'Support' }));
    await sync('Later');
    expect(await lines('later')).to.deep.equal([
      'Base 1 2025-12-01..2025-12-16',
      'Base 1 2025-12-16..',
      'Support 1 2025-12-01..',
    ]);
  });

  it('what ends by itself ends there at the new price, too: a phase, what is taken off, another quantity ahead', async () => {
    await world.on('2025-11-01');
    await world.plan('Ending', []);
    const base = await world.price('Ending', fixed('30', { invoice_cadence: 'ARREAR', display_name: 'Base' }));
    const until = { start_date: '2025-11-01T00:00:00Z', end_date: '2025-11-21T00:00:00Z' };
    const phases = [
      { ...until, override_line_items: [{ price_id: base.id, quantity: '2' }] },
      { start_date: until.end_date },
    ];
    await world.subscribe('phased', 'Ending', { phases });
    await world.subscribe('taken off', 'Ending');
    await world.subscribe('more', 'Ending');
    const lineOf = async (customer: string) => (await world.subscription(customer)).line_items[0]!.id;
    const off = { effective_from: until.end_date };
    const path = `/subscriptions/lineitems/${await lineOf('taken off')}` as const;
    expect((await world.api.request('DELETE', path, { body: off })).status).to.equal(200);
    const line_items = [{ id: await lineOf('more'), quantity: '3', effective_date: until.end_date }];
    await world.post(`/subscriptions/${world.id('subscription more')}/modify/execute`, {
      type: 'quantity_change',
      quantity_change_params: { line_items },
    });
    await world.on('2025-11-11', () => changed(base, { amount: '60' }));
    await sync('Ending');
    expect(await lines('phased')).to.deep.equal([
      'Base 1 2025-11-21..',
      'Base 2 2025-11-01..2025-11-11',
      'Base 2 2025-11-11..2025-11-21',
    ]);
    const phase = (await world.subscription('phased')).line_items.filter((line) => line.subscription_phase_id);
    expect(phase, 'both are lines of the phase').to.have.length(2);
    expect(await lines('taken off')).to.deep.equal(['Base 1 2025-11-01..2025-11-11', 'Base 1 2025-11-11..2025-11-21']);
    expect(await lines('more')).to.deep.equal([
      'Base 1 2025-11-01..2025-11-11',
      'Base 1 2025-11-11..2025-11-21',
      'Base 3 2025-11-21..',
    ]);
  });

  it('what is new and paid in advance begins when the time that is paid is over, also where it is sold sooner', async () => {
    await world.on('2026-01-01');
    await world.plan('Quarters', [fixed('300', { billing_period: 'QUARTERLY', invoice_cadence: 'ADVANCE' })]);
    await world.subscribe('quarterly', 'Quarters', { billing_period: 'QUARTERLY' });
    await world.on('2026-01-20');
    for (const [name, start_date] of [
      ['now', null],
      ['ahead', '2026-02-15T00:00:00Z'],
      ['later', '2026-05-01T00:00:00Z'],
    ])
      await world.price(
        'Quarters',
        fixed('14', { invoice_cadence: 'ADVANCE', display_name: name, ...(start_date ? { start_date } : {}) }),
      );
    await sync('Quarters');
    const added = (await lines('quarterly')).filter((line: string) => !line.startsWith('Quarters'));
    expect(added).to.deep.equal(['ahead 1 2026-04-01..', 'later 1 2026-05-01..', 'now 1 2026-04-01..']);
  });

  it('what is paid in advance stays until its period is over, and usage changes its price at once', async () => {
    await world.on('2026-01-01');
    await world.plan('Pro', []);
    const base = await world.price('Pro', fixed('10', { invoice_cadence: 'ADVANCE', display_name: 'Base' }));
    const calls = await world.price('Pro', usage('calls', '0.10', { display_name: 'Calls' }));
    await world.subscribe('acme', 'Pro', { override_line_items: [{ price_id: base.id, quantity: '3' }] });
    await world.subscribe('globex', 'Pro', { override_line_items: [{ price_id: base.id, amount: '7' }] });
    await world.on('2026-01-05', () => world.use('acme', 'calls', 100));
    await world.on('2026-01-11');
    await changed(base, { amount: '20' });
    await changed(calls, { amount: '0.20' });
    await world.price('Pro', fixed('5', { display_name: 'Support', start_date: '2026-01-11T00:00:00Z' }));
    expect(await isBehind('acme')).to.equal(true);

    const done = { subscriptions_synced: 2, line_items_added: 5, line_items_ended: 3 };
    expect(await sync('Pro')).to.deep.equal(done);
    expect(await lines('acme')).to.deep.equal([
      'Base 3 2026-01-01..2026-02-01',
      'Base 3 2026-02-01..',
      'Calls 0 2026-01-01..2026-01-11',
      'Calls 0 2026-01-11..',
      'Support 1 2026-01-11..',
    ]);
    // What is paid on its own terms is not the plan's to change.
    expect(await lines('globex')).to.include('Base 1 2026-01-01..');
    expect(await isBehind('acme')).to.equal(false);

    await world.on('2026-01-20', () => world.use('acme', 'calls', 10));
    await world.on('2026-02-01');
    const [, cycle] = await world.statements('acme');
    expect(cycle!.split('\n').slice(1).sort()).to.deep.equal([
      '  Base 2026-02-01..2026-03-01: 3 = 60',
      '  Calls 2026-01-01..2026-01-11: 100 = 10',
      '  Calls 2026-01-11..2026-02-01: 10 = 2',
      '  Support 2026-01-11..2026-02-01: 1 = 3.39',
    ]);
  });

  it('again: nothing is left to do, however often it is asked for', async () => {
    const before = await lines('acme');
    expect(await sync('Pro')).to.deep.equal({ subscriptions_synced: 0, line_items_added: 0, line_items_ended: 0 });
    expect(await lines('acme')).to.deep.equal(before);
  });

  it('what a meter that never resets has counted changes its price with the period', async () => {
    await world.plan('Seats', []);
    const seats = await world.price('Seats', usage('seats', '1', { display_name: 'Seats' }));
    await world.subscribe('initech', 'Seats');
    await world.on('2026-02-10');
    await changed(seats, { amount: '2' });
    await sync('Seats');
    expect(await lines('initech')).to.deep.equal(['Seats 0 2026-02-01..2026-03-01', 'Seats 0 2026-03-01..']);
  });

  it('a change that lies ahead is charged once, for who is there and for who comes', async () => {
    await world.on('2026-02-10');
    await world.plan('Ahead', []);
    const seats = await world.price('Ahead', usage('seats', '1', { display_name: 'Seats' }));
    const setup = await world.price(
      'Ahead',
      fixed('50', { billing_period: 'ONETIME', invoice_cadence: 'ADVANCE', display_name: 'Setup' }),
    );
    await world.subscribe('here', 'Ahead');
    const effective_from = '2026-03-20T00:00:00Z';
    await changed(seats, { amount: '2', effective_from });
    await changed(setup, { amount: '70', effective_from });
    await world.subscribe('comes', 'Ahead');
    await sync('Ahead');
    const whole = ['Seats 0 2026-02-10..2026-04-10', 'Seats 0 2026-04-10..'];
    expect(await lines('here')).to.deep.equal([...whole, 'Setup 1 2026-02-10..']);
    expect(await lines('comes')).to.deep.equal([...whole, 'Setup 1 2026-02-10..2026-03-20']);
  });

  it('a draft has what it would have if it were made now', async () => {
    await world.plan('Draft', []);
    const old = await world.price('Draft', fixed('1', { display_name: 'Old' }));
    await world.subscribe('hooli', 'Draft', { subscription_status: 'draft', start_date: '2026-03-01T00:00:00Z' });
    await world.api.request('DELETE', `/prices/${old.id}`);
    await world.price('Draft', fixed('2', { display_name: 'New' }));
    await sync('Draft');
    expect(await lines('hooli')).to.deep.equal(['New 1 2026-03-01..']);
  });

  it('two at once bring a subscription there once', async () => {
    await world.plan('Race', [fixed('1', { display_name: 'One' })]);
    const { id } = await world.subscribe('race', 'Race');
    await world.price('Race', fixed('2', { display_name: 'Two' }));
    const { postgres } = world.api.services;
    const bring = () =>
      postgres.transaction((database) =>
        syncSubscription(database, world.api.scope, { id, author: { user_id: 'user_x', now: world.now } }),
      );
    const done = await Promise.all([bring(), bring(), bring()]);
    expect(done.filter((each) => each !== null)).to.have.length(1);
    expect(await lines('race')).to.have.length(2);
  });

  it('a try that is broken off is gone on with, and the counts add up', async () => {
    await world.plan('Many', [fixed('1', { display_name: 'One' })]);
    for (const customer of ['one', 'two', 'three']) await world.subscribe(customer, 'Many');
    await world.price('Many', fixed('2', { display_name: 'Two' }));
    const place = { ...world.api.scope, ...(await ask('Many')) };
    const broken = AbortSignal.abort(new DOMException('stopped', 'AbortError'));
    const error = await trySync(world.api.services, place, attempt(broken)).catch((reason: Error) => reason);
    expect(error).to.include({ name: 'AbortError' });
    const first = { id: world.id('subscription one'), author: { user_id: 'user_x', now: world.now } };
    await world.api.services.postgres.transaction((database) => syncSubscription(database, world.api.scope, first));
    expect(await trySync(world.api.services, place, attempt())).to.equal('completed');
    const { result } = await world.api.services.postgres('workflow_runs').where('id', place.workflow_id).first();
    expect(result).to.deep.equal({ subscriptions_synced: 2, line_items_added: 2, line_items_ended: 0 });
    for (const customer of ['one', 'two', 'three']) expect(await lines(customer)).to.have.length(2);
  });

  it('what begins later goes on at its new price where it begins, and what ends by itself does not', async () => {
    await world.on('2026-01-01');
    await world.plan('Phased', []);
    const base = await world.price('Phased', fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'Base' }));
    const calls = await world.price('Phased', usage('calls', '1', { display_name: 'Calls' }));
    const phased = (day: string) => ({
      phases: [
        {
          start_date: '2026-01-01T00:00:00Z',
          end_date: `2026-${day}T00:00:00Z`,
          override_line_items: [{ price_id: base.id, amount: '10' }],
        },
        { start_date: `2026-${day}T00:00:00Z` },
      ],
    });
    await world.subscribe('soon', 'Phased', phased('01-16'));
    await world.subscribe('later', 'Phased', phased('03-01'));
    await world.subscribe('seats', 'Phased');
    const [line] = (await world.subscription('seats')).line_items;
    const change = { id: line!.id, quantity: '3', effective_date: '2026-01-21T00:00:00Z' };
    const modification = { type: 'quantity_change', quantity_change_params: { line_items: [change] } };
    await world.post(`/subscriptions/${world.id('subscription seats')}/modify/execute`, modification);
    await world.on('2026-01-11');
    await changed(base, { amount: '62' });
    await changed(calls, { amount: '2' });
    await sync('Phased');
    await sync('Phased');
    const bases = async (customer: string) => (await lines(customer)).filter((one: string) => one.startsWith('Base'));
    expect(await bases('soon')).to.deep.equal([
      'Base 1 2026-01-01..2026-01-16',
      'Base 1 2026-01-16..2026-02-01',
      'Base 1 2026-02-01..',
    ]);
    expect(await bases('later')).to.deep.equal(['Base 1 2026-01-01..2026-03-01', 'Base 1 2026-03-01..']);
    expect(await bases('seats')).to.deep.equal([
      'Base 1 2026-01-01..2026-01-21',
      'Base 3 2026-01-21..2026-02-01',
      'Base 3 2026-02-01..',
    ]);
    await world.on('2026-01-18', () => world.use('soon', 'calls', 4));
    await world.on('2026-02-01');
    const charged = async (customer: string) => (await world.invoices(customer)).at(-1)!.subtotal;
    expect(await charged('soon'), '4 × 2, and the base').to.equal('70');
    expect(await charged('seats')).to.equal('186');
    await world.on('2026-03-01');
    expect(await charged('later')).to.equal('62');
  });

  it('what a line is committed to goes on in the line that follows it', async () => {
    await world.on('2026-01-01');
    await world.plan('Committed', []);
    const calls = await world.price('Committed', usage('calls', '1', { display_name: 'Calls' }));
    const commitment = { commitment_amount: '310', enable_true_up: true, commitment_duration: 'QUARTERLY' };
    await world.subscribe('committed', 'Committed', { line_item_commitments: { [calls.id]: commitment } });
    await world.on('2026-01-11', () => world.use('committed', 'calls', 10, { at: '2026-01-05T00:00:00Z' }));
    await changed(calls, { amount: '2' });
    await sync('Committed');
    const { line_items } = await world.subscription('committed');
    expect(line_items.map(({ commitment_amount }) => commitment_amount)).to.deep.equal(['310', '310']);
    await world.on('2026-04-01');
    const invoices = await world.invoices('committed');
    const total = invoices.reduce((sum: number, { subtotal }) => sum + Number(subtotal), 0);
    expect(total, 'the quarter’s, once').to.equal(310);
  });

  it('409 while one of the plan runs; 404 of another tenant, and of an archived plan; 403 without the right', async () => {
    await world.plan('Busy', [fixed('1')]);
    const { workflow_id, run_id } = await ask('Busy');
    const again = await world.api.request('POST', `${pathOf('Busy')}/v2`);
    expect(again.status, again.text).to.equal(409);
    const summary = await world.get(`/workflows/${workflow_id}/${run_id}/summary`);
    expect(summary).to.include({ workflow_type: 'PriceSyncWorkflow', status: 'Running' });
    const { key } = await world.api.otherTenant();
    expect((await world.api.request('POST', pathOf('Busy'), { key })).status).to.equal(404);
    const reader = await world.api.keyWithRoles(['all_reader'], { user_type: 'user' });
    expect((await world.api.request('POST', pathOf('Busy'), { key: reader })).status).to.equal(403);
    expect((await world.api.request('POST', pathOf('Busy'), { key: null })).status).to.equal(401);
    await world.plan('Gone', []);
    await world.api.request('DELETE', `/plans/${world.id('plan Gone')}`);
    expect((await world.api.request('POST', pathOf('Gone'))).status).to.equal(404);
  });
});
