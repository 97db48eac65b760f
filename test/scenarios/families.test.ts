/**
 * Subscriptions that belong together (docs/rules/subscriptions.md, "Families"): somebody else pays, several customers count
 * as one, several are invoiced together. Told on one world; the statements are what their customers would read.
 */
import { expect } from 'chai';
import { csvRecords } from '../support/csv-records.ts';
import { fixed, startWorld, summarizeInvoice, tiers, usage, type World } from '../support/world.ts';

const at = (day: string) => `2026-${day}T00:00:00Z`;

describe('scenario: families of subscriptions', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.meter('users', { type: 'COUNT_UNIQUE', field: 'n' });
    await world.meter('level', { type: 'WEIGHTED_SUM', field: 'n' });
    await world.meter('mean', { type: 'AVG', field: 'n' });
    await world.meter('newest', { type: 'LATEST', field: 'n' });
    await world.plan('Team', [
      fixed('50', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      tiers(
        'calls',
        [
          [100, '1'],
          [null, '0.5'],
        ],
        { display_name: 'calls' },
      ),
    ]);
    await world.plan('Everything', [
      usage('calls', '1', { display_name: 'calls' }),
      usage('seats', '1', { display_name: 'seats' }),
      usage('peak', '1', { display_name: 'peak' }),
      usage('users', '1', { display_name: 'users' }),
      usage('level', '1', { display_name: 'level' }),
      usage('mean', '1', { display_name: 'mean' }),
      usage('newest', '1', { display_name: 'newest' }),
    ]);
  });
  after(() => world.stop());

  const customers = async (...names: string[]) => {
    for (const name of names) await world.post('/customers', { external_id: name, name });
  };
  const childrenOf = async (parent: string) =>
    (await world.post('/subscriptions/search', { parent_subscription_ids: [world.id(`subscription ${parent}`)] }))
      .items;

  it('is paid by another customer: own lines, and invoices to whoever pays', async () => {
    await world.on('2026-01-01', () => customers('head office'));
    await world.subscribe('branch', 'Team', { inheritance: { invoicing_customer_external_id: 'head office' } });
    await world.use('branch', 'calls', 10);
    await world.on('2026-02-01');
    const [opening, cycle] = await world.invoices('branch');
    const payer = (await world.get('/customers/external/head office')).id;
    expect([opening!.customer_id, cycle!.customer_id]).to.deep.equal([payer, payer]);
    expect(cycle!.subscription_customer_id).to.equal((await world.subscription('branch')).customer_id);
    expect((await world.subscription('branch')).subscription_type).to.equal('DELEGATED_INVOICING');
    expect((await world.statements('branch')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 60\n' +
        '  base 2026-02-01..2026-03-01: 1 = 50\n  calls 2026-01-01..2026-02-01: 10 = 10',
    );
  });

  it('counts the usage of those who inherit it on its own meters, as if they were one customer', async () => {
    await world.on('2026-01-01', () => customers('north', 'south'));
    const heirs = { external_customer_ids_to_inherit_subscription: ['north', 'south'] };
    const parent = await world.subscribe('company', 'Team', { inheritance: heirs });
    expect(parent.subscription_type).to.equal('PARENT');
    for (const [name, n] of [
      ['company', 40],
      ['north', 50],
      ['south', 30],
    ] as const)
      await world.use(name, 'calls', n);
    await world.waitForPipeline();
    const preview = await world.preview('company');
    await world.on('2026-02-01');
    const said = (await world.statements('company')).at(-1);
    // 120 calls go through the tiers once: 100 × 1 + 20 × 0.5
    expect(said).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 160\n' +
        '  base 2026-02-01..2026-03-01: 1 = 50\n  calls 2026-01-01..2026-02-01: 120 = 110',
    );
    expect(summarizeInvoice(preview)).to.deep.equal(summarizeInvoice((await world.invoices('company')).at(-1)!));
    for (const child of await childrenOf('company')) {
      expect(child).to.include({ subscription_type: 'INHERITED', subscription_status: 'active' });
      expect(Date.parse(child.current_period_end)).to.equal(Date.parse(at('03-01')));
      const { items } = await world.post('/invoices/search', { subscription_id: child.id });
      expect(items).to.deep.equal([]);
    }
  });

  describe('who joins and leaves by a modification', () => {
    const modify = (verb: string, type: string, params: Record<string, unknown>) =>
      world.post(`/subscriptions/${world.id('subscription club')}/modify/${verb}`, {
        type,
        [`${type}_params`]: params,
      });

    before(async () => {
      await world.on('2026-01-01', () => world.subscribe('club', 'Team'));
      await customers('member');
      await world.on('2026-01-10');
    });

    it('counts who joins from then on, as the preview has said', async () => {
      const params = { external_customer_ids_to_inherit_subscription: ['member'] };
      const preview = await modify('preview', 'inheritance', params);
      expect(await childrenOf('club')).to.deep.equal([]);
      const done = await modify('execute', 'inheritance', params);
      const [child] = await childrenOf('club');
      expect(child).to.include({ subscription_type: 'INHERITED', start_date: at('01-10') });
      const [said] = preview.changed_resources.subscriptions;
      expect(done.changed_resources.subscriptions).to.deep.equal([{ ...said, id: child!.id }]);
      expect(done.subscription!.subscription_type).to.equal('PARENT');
    });

    it('and until they leave', async () => {
      await world.send(
        ['01-09', '01-12', '01-20'].map((day) => world.event('member', 'calls', { n: 10, at: at(day) })),
      );
      await world.on('2026-01-20');
      await modify('execute', 'inheritance', { action: 'remove', external_customer_ids_to_remove: ['member'] });
      const [child] = await childrenOf('club');
      expect(child).to.include({ subscription_status: 'cancelled', end_date: at('01-20') });
      await world.on('2026-02-01');
      const rename = async () => {
        const { id } = await world.get('/customers/external/member');
        return (await world.api.request('PUT', `/customers/${id}`, { body: { external_id: 'renamed' } })).status;
      };
      expect(await rename(), 'its usage is on a draft').to.equal(400);
      expect((await world.statements('club')).at(-1)).to.contain('calls 2026-01-01..2026-02-01: 10 = 10');
      await world.finalize();
      expect(await rename(), 'what comes late of it is on the next invoice of the parent').to.equal(400);
      const own = { plan_id: world.id('plan Team'), currency: 'usd', billing_period: 'MONTHLY' };
      await world.post('/subscriptions', { external_customer_id: 'member', ...own });
    });

    it('a group takes in a subscription, and lets it go', async () => {
      await world.subscribe('joiner', 'Team');
      // Their periods are the same: both began on the 1st.
      const child = world.id('subscription joiner');
      const group = { child_subscription_ids: [child] };
      await modify('execute', 'grouped_invoicing', { action: 'add', ...group });
      await world.use('joiner', 'calls', 4);
      await world.on('2026-03-01');
      expect((await world.statements('club')).at(-1)).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 104\n' +
          '  base 2026-03-01..2026-04-01: 1 = 50\n  calls 2026-02-01..2026-03-01: 0 = 0\n' +
          '  base 2026-03-01..2026-04-01: 1 = 50\n  calls 2026-02-01..2026-03-01: 4 = 4',
      );
      await world.use('joiner', 'calls', 6);
      await modify('execute', 'grouped_invoicing', { action: 'remove', ...group });
      await world.on('2026-04-01');
      const said = await world.statements('joiner');
      expect(said.at(-1)).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 56\n' +
          '  base 2026-04-01..2026-05-01: 1 = 50\n  calls 2026-03-01..2026-04-01: 6 = 6',
      );
      expect(said, 'the opening, and the period after the group').to.have.length(2);
    });

    it('a child that is cancelled owes what it used on the invoice of its parent', async () => {
      const group = { child_subscription_ids: [world.id('subscription joiner')] };
      await modify('execute', 'grouped_invoicing', { action: 'add', ...group });
      await world.use('joiner', 'calls', 2);
      await world.on('2026-04-11', () => world.cancel('joiner'));
      expect(await world.subscription('joiner')).to.include({ subscription_status: 'cancelled' });
      expect(await world.statements('joiner')).to.have.length(2);
      await world.on('2026-05-01');
      expect((await world.statements('club')).at(-1)).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-04-01..2026-05-01 = 52\n' +
          '  base 2026-05-01..2026-06-01: 1 = 50\n  calls 2026-04-01..2026-05-01: 0 = 0\n' +
          '  calls 2026-04-01..2026-04-11: 2 = 2',
      );
    });
  });

  describe('a group of three', () => {
    before(async () => {
      await world.on('2026-01-01');
      await world.plan('Small', [
        fixed('7', { invoice_cadence: 'ADVANCE', display_name: 'small' }),
        usage('calls', '2', { display_name: 'small calls' }),
      ]);
      await customers('second');
      await world.subscribe('third', 'Small');
      const { id: plan_id } = await world.get(`/plans/${world.id('plan Small')}`);
      await world.subscribe('first', 'Team', {
        inheritance: {
          subscriptions_ids_for_grouped_invoicing: [world.id('subscription third')],
          grouped_invoicing_children_to_create: [{ plan_id, external_customer_id: 'second' }],
        },
      });
      await world.use('first', 'calls', 1);
      await world.use('second', 'calls', 10);
      await world.use('third', 'calls', 20);
    });

    it('opens with one invoice; who was there already has paid for the period', async () => {
      expect(await world.statements('first')).to.deep.equal([
        'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 57\n' +
          '  base 2026-01-01..2026-02-01: 1 = 50\n  small 2026-01-01..2026-02-01: 1 = 7',
      ]);
      expect(await world.statements('third')).to.deep.equal([
        'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 7\n  small 2026-01-01..2026-02-01: 1 = 7',
      ]);
      const types = (await childrenOf('first')).map(({ subscription_type }) => subscription_type);
      expect(types).to.deep.equal(['grouped_invoicing', 'grouped_invoicing']);
    });

    it('counts in the balance of who is invoiced, and there once', async () => {
      await world.waitForPipeline();
      const used = async (external_customer_id: string) => {
        const { id } = await world.post('/wallets', { external_customer_id, currency: 'usd' });
        const { current_period_usage } = await world.get(`/wallets/${id}/balance/real-time`);
        await world.post(`/wallets/${id}/terminate`, {});
        return current_period_usage;
      };
      expect([await used('first'), await used('second'), await used('third')]).to.deep.equal(['61', '0', '0']);
    });

    it('has one invoice for a period, as it was previewed; the parent moves all of them on', async () => {
      const preview = await world.preview('first');
      await world.on('2026-02-01');
      const said =
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 125\n' +
        '  base 2026-02-01..2026-03-01: 1 = 50\n  calls 2026-01-01..2026-02-01: 1 = 1\n' +
        '  small 2026-02-01..2026-03-01: 1 = 7\n  small calls 2026-01-01..2026-02-01: 20 = 40\n' +
        '  small 2026-02-01..2026-03-01: 1 = 7\n  small calls 2026-01-01..2026-02-01: 10 = 20';
      expect((await world.statements('first')).at(-1)).to.equal(said);
      expect(summarizeInvoice(preview)).to.deep.equal(summarizeInvoice((await world.invoices('first')).at(-1)!));
      expect(await world.statements('third')).to.have.length(1);
      for (const child of await childrenOf('first'))
        expect(Date.parse(child.current_period_end)).to.equal(Date.parse(at('03-01')));
    });

    it('computes a draft again with those who were on it, and late events of each', async () => {
      await world.send([world.event('third', 'calls', { n: 5, at: at('01-20') })]);
      await world.waitForPipeline();
      await world.finalize();
      const final = (await world.statements('first')).at(-1)!;
      expect(final).to.contain('FINALIZED').and.contain('small calls 2026-01-01..2026-02-01: 25 = 50');
      await world.send([world.event('third', 'calls', { n: 1, at: at('01-21') })]);
      await world.on('2026-03-01');
      expect((await world.statements('first')).at(-1)).to.contain(
        'small calls (late events) 2026-01-01..2026-02-01: 1 = 2',
      );
    });

    it('ends with its parent: the children go on by themselves', async () => {
      await world.on('2026-03-10', () => world.use('third', 'calls', 3));
      await world.cancel('first', { cancellation_type: 'end_of_period' });
      await world.on('2026-04-01');
      expect((await world.statements('first')).at(-1)).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 6\n' +
          '  calls 2026-03-01..2026-04-01: 0 = 0\n  small calls 2026-03-01..2026-04-01: 3 = 6\n' +
          '  small calls 2026-03-01..2026-04-01: 0 = 0',
      );
      expect(await world.subscription('third')).to.include({
        subscription_type: 'STANDALONE',
        parent_subscription_id: null,
        subscription_status: 'active',
      });
      await world.on('2026-05-01');
      expect((await world.statements('third')).slice(1)).to.deep.equal([
        'SUBSCRIPTION_CREATE FINALIZED 2026-04-01..2026-05-01 = 7\n  small 2026-04-01..2026-05-01: 1 = 7',
        'SUBSCRIPTION_CYCLE DRAFT 2026-04-01..2026-05-01 = 7\n' +
          '  small 2026-05-01..2026-06-01: 1 = 7\n  small calls 2026-04-01..2026-05-01: 0 = 0',
      ]);
    });
  });

  describe('a parent with two children, of whom one joins on the 10th and leaves on the 20th', () => {
    const JANUARY = { start_time: at('01-01'), end_time: at('02-01') };
    /** Of January, with what the guest did on the 12th and without what they did on the 5th and the 25th. */
    const COUNTED = { calls: '34', seats: '15', peak: '8', users: '3', level: '39', mean: '15', newest: '9' };

    before(async () => {
      await world.on('2026-01-01', () => customers('stayer'));
      const heirs = { external_customer_ids_to_inherit_subscription: ['stayer'] };
      await world.subscribe('firm', 'Everything', { inheritance: heirs });
      await world.on('2026-01-10');
      const joined = await world.subscribe('guest', 'Everything', {
        parent_subscription_id: world.id('subscription firm'),
        end_date: at('01-20'),
      });
      expect(joined.subscription_type).to.equal('INHERITED');
      const sent: [string, string, string, number][] = [
        ['firm', 'calls', '01-05', 3],
        ['stayer', 'calls', '01-05', 11],
        ['guest', 'calls', '01-12', 20],
        ['firm', 'seats', '01-05', 10],
        ['guest', 'seats', '01-12', 5],
        ['firm', 'peak', '01-05', 7],
        ['guest', 'peak', '01-12', 8],
        ['firm', 'users', '01-05', 1],
        ['stayer', 'users', '01-05', 2],
        ['guest', 'users', '01-12', 2],
        ['guest', 'users', '01-12', 3],
        ['firm', 'level', '01-01', 31],
        ['guest', 'level', '01-12', 31],
        ['firm', 'mean', '01-05', 10],
        ['guest', 'mean', '01-12', 20],
        ['firm', 'newest', '01-05', 7],
        ['guest', 'newest', '01-12', 9],
      ];
      for (const meter of Object.keys(COUNTED)) sent.push(['guest', meter, '01-05', 90], ['guest', meter, '01-25', 91]);
      await world.send(sent.map(([customer, meter, day, n]) => world.event(customer, meter, { n, at: at(day) })));
      await world.on('2026-01-31');
    });

    const byName = (records: readonly object[], name: string, quantity: string) =>
      Object.fromEntries((records as Record<string, string>[]).map((record) => [record[name], record[quantity]]));

    it('counts what they did between the two days, at every door', async () => {
      const subscription_id = world.id('subscription firm');
      const told = await world.post('/subscriptions/usage', { subscription_id, ...JANUARY });
      expect(byName(told.charges, 'meter_display_name', 'quantity')).to.deep.equal(COUNTED);
      const preview = await world.preview('firm');
      expect(byName(preview.line_items, 'display_name', 'quantity')).to.deep.equal(COUNTED);
      for (const path of ['/events/analytics', '/meter-usage/detailed-analytics'] as const)
        for (const window_size of [undefined, 'DAY']) {
          const { items } = await world.post(path, { external_customer_id: 'firm', window_size, ...JANUARY });
          expect(items.map((item) => item.total_cost).sort()).to.deep.equal(Object.values(COUNTED).sort());
        }
      // Of the guest all that they did, without a cost, and without a feature of the meters.
      const { items: own } = await world.post('/events/analytics', { external_customer_id: 'guest', ...JANUARY });
      expect(own.map((item) => [item.meter_id, item.total_cost])).to.have.deep.members(
        Object.keys(COUNTED).map((meter) => [world.id(`meter ${meter}`), '0']),
      );
      const range = `start_time=${JANUARY.start_time}&end_time=${JANUARY.end_time}&amounts=true`;
      const rows = csvRecords((await world.api.request('GET', `/events/usage/export?${range}`)).text);
      const charged = rows.filter((row) => row.external_customer_id === 'firm');
      expect(byName(charged, 'meter_name', 'amount')).to.deep.equal(COUNTED);
      // What the firm is charged for stands there, and nowhere else.
      const calls = rows.filter((row) => row.meter_name === 'calls');
      const used = (name: string) =>
        calls.filter((row) => row.external_customer_id === name).map((row) => row.usage ?? row.quantity);
      expect([used('firm'), used('stayer'), used('guest')]).to.deep.equal([['34'], [], ['90', '91']]);
      const plain = await world.api.request(
        'GET',
        `/events/usage/export?${range.replace('amounts=true', 'amounts=false')}`,
      );
      const each = csvRecords(plain.text).filter((row) => row.meter_name === 'calls');
      expect(each.map((row) => row.external_customer_id)).to.include.members(['firm', 'guest', 'stayer']);
    });

    it('and so do the invoices; who has left takes their seats with them', async () => {
      await world.on('2026-02-01');
      await world.on('2026-03-01');
      const [january, february] = await world.invoices('firm');
      expect(byName(january!.line_items, 'display_name', 'quantity')).to.deep.equal(COUNTED);
      expect(byName(february!.line_items, 'display_name', 'quantity')).to.include({ calls: '0', seats: '10' });
      const [guest] = (await childrenOf('firm')).filter(({ end_date }) => end_date !== null);
      expect(guest!.subscription_status).to.equal('cancelled');
    });
  });
});
