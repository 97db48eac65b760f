/** Changes inside a period whose credits and charges come to what was served, whatever was paid before and whichever came first. */
import { expect } from 'chai';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import type { Price } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

describe('scenario: changes to the penny', () => {
  let world: World;
  let calls: Price;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const meter = await world.meter('calls');
    await world.plan('Seat', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    await world.plan('Two', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'desk' }),
    ]);
    await world.plan('Large', [fixed('93', { invoice_cadence: 'ADVANCE', display_name: 'large' })]);
    await world.plan('Quarter', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'month' }),
      fixed('90', { invoice_cadence: 'ARREAR', billing_period: 'QUARTERLY', display_name: 'quarter' }),
    ]);
    await world.plan('Calls', []);
    calls = await world.price('Calls', usage('calls', '1', { display_name: 'calls' }));
    const later = { billing_period: 'QUARTERLY', display_name: 'calls' };
    await world.plan('Calls by the quarter', [usage('calls', '1', later)]);
    const feature = await world.post('/features', { name: 'Calls', type: 'metered', meter_id: meter.id });
    await world.plan('Free calls', [usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('Free calls by the quarter', [usage('calls', '1', later)]);
    for (const plan of ['Free calls', 'Free calls by the quarter'])
      await world.post('/entitlements', {
        entity_type: 'PLAN',
        entity_id: world.id(`plan ${plan}`),
        feature_id: feature.id,
        feature_type: 'metered',
        usage_limit: 100,
      });
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const line = async (customer: string, name: string) => {
    const { line_items } = await world.subscription(customer);
    return line_items.findLast(
      ({ display_name, end_date }) => display_name === name && (!end_date || Date.parse(end_date) > +world.now),
    );
  };
  const change = async <Method extends string>(method: Method, id: string, body: Fields) => {
    const answer = await world.api.request(method, `/subscriptions/lineitems/${id}`, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  const reprice = async (customer: string, name: string, body: Fields) =>
    change('PUT', (await line(customer, name))!.id, body);
  const last = async (customer: string) => (await world.statements(customer)).at(-1);
  const none = { proration_behavior: 'none' };
  const toPlan = (plan: string, fields: Fields = {}) => ({
    target_plan_id: world.id(`plan ${plan}`),
    proration_behavior: 'create_prorations',
    billing_cadence: 'RECURRING',
    billing_period: 'MONTHLY',
    billing_cycle: 'anniversary',
    ...fields,
  });

  describe('a line of months in a subscription of quarters', () => {
    const quarterly = { billing_period: 'QUARTERLY' };

    it('is credited for every month that was charged, and the line that follows pays for each', async () => {
      await world.on('2026-01-01', () => world.subscribe('months', 'Quarter', quarterly));
      await world.on('2026-02-15', () => reprice('months', 'month', { amount: '62' }));
      expect(await last('months')).to.equal(
        'SUBSCRIPTION_UPDATE FINALIZED 2026-02-15..2026-04-01 = 46.5\n' +
          '  month (unused time) 2026-02-15..2026-03-01: 1 = -15.5\n' +
          '  month (unused time) 2026-03-01..2026-04-01: 1 = -31\n' +
          '  month 2026-02-15..2026-03-01: 1 = 31\n  month 2026-03-01..2026-04-01: 1 = 62',
      );
      await world.on('2026-04-01');
      expect(await last('months')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-04-01 = 276\n' +
          '  quarter 2026-01-01..2026-04-01: 1 = 90\n  month 2026-04-01..2026-05-01: 1 = 62\n' +
          '  month 2026-05-01..2026-06-01: 1 = 62\n  month 2026-06-01..2026-07-01: 1 = 62',
      );
    });

    it('that follows without proration is charged when all that was paid is over', async () => {
      await world.on('2026-01-01', () => world.subscribe('kept months', 'Quarter', quarterly));
      await world.on('2026-02-15', () => reprice('kept months', 'month', { amount: '62', ...none }));
      await world.on('2026-04-01');
      expect(await world.statements('kept months')).to.have.lengthOf(2);
      expect(await last('kept months'))
        .to.contain('= 276\n')
        .and.not.contain('2026-03-01');
    });

    it('that is taken off is credited to the end of what it was charged for', async () => {
      await world.on('2026-01-01', () => world.subscribe('no months', 'Quarter', quarterly));
      await world.on('2026-02-15', async () => change('DELETE', (await line('no months', 'month'))!.id, {}));
      expect(await last('no months'))
        .to.contain('= -15.5\n')
        .and.contain('= -31');
    });
  });

  describe('without proration, and then with it, in one period', () => {
    it('what was paid for the time is given back once', async () => {
      await world.on('2026-01-01', () => world.subscribe('kept', 'Seat'));
      await world.on('2026-01-11', () => reprice('kept', 'seat', { amount: '62', ...none }));
      await world.on('2026-01-16', () => reprice('kept', 'seat', { amount: '93' }));
      expect(await last('kept')).to.equal(
        'SUBSCRIPTION_UPDATE FINALIZED 2026-01-16..2026-02-01 = 32\n' +
          '  seat (unused time) 2026-01-16..2026-02-01: 1 = -16\n  seat 2026-01-16..2026-02-01: 1 = 48',
      );
      await world.on('2026-01-21', async () => change('DELETE', (await line('kept', 'seat'))!.id, {}));
      expect(await last('kept')).to.equal(
        'SUBSCRIPTION_UPDATE SKIPPED 2026-01-21..2026-02-01 = 0\n  seat (unused time) 2026-01-21..2026-02-01: 1 = -33',
      );
    });

    it('also of a plan with several lines, and of a cancellation', async () => {
      await world.on(
        '2026-01-01',
        () => world.subscribe('planned', 'Two'),
        () => world.subscribe('left', 'Two'),
      );
      await world.on(
        '2026-01-11',
        () => world.post(path('planned', 'change/execute'), toPlan('Seat', none)),
        () => world.post(path('left', 'change/execute'), toPlan('Seat', none)),
      );
      await world.pay('left');
      await world.on('2026-01-16');
      const changed = await world.post(path('planned', 'change/execute'), toPlan('Large'));
      expect(changed.invoice ?? (await world.invoices('planned')).at(-1)).to.include({ subtotal: '0' });
      expect(await last('planned')).to.equal(
        'SUBSCRIPTION_UPDATE SKIPPED 2026-01-16..2026-02-01 = 0\n' +
          '  base (unused time) 2026-01-16..2026-02-01: 1 = -16\n  desk (unused time) 2026-01-16..2026-02-01: 1 = -32\n' +
          '  large 2026-01-16..2026-02-01: 1 = 48',
      );
      const cancelled = await world.cancel('left', {
        cancellation_type: 'immediate',
        proration_behavior: 'create_prorations',
      });
      expect(cancelled.total_credit_amount).to.equal('48');
    });

    it('a draft that rests says the same as if it had been final', async () => {
      await world.on('2026-01-01', () => world.subscribe('rests', 'Seat'));
      await world.on('2026-02-01');
      await world.on('2026-02-08', () => reprice('rests', 'seat', { amount: '62', ...none }));
      expect(await last('rests')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 31\n  seat 2026-02-01..2026-03-01: 1 = 31',
      );
      await world.on('2026-02-15', () => reprice('rests', 'seat', { amount: '93' }));
      expect(await last('rests')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 62\n' +
          '  seat 2026-02-01..2026-02-15: 1 = 15.5\n  seat 2026-02-15..2026-03-01: 1 = 46.5',
      );
      await world.on('2026-03-01');
      expect(await last('rests')).to.contain('= 93\n');
    });

    it('a change that lies in a later period is charged from its day on, and not earlier', async () => {
      await world.on('2026-01-01', () => world.subscribe('later', 'Seat'));
      await world.on('2026-01-11', () =>
        reprice('later', 'seat', { amount: '62', effective_from: '2026-02-15T00:00:00Z', ...none }),
      );
      await world.on('2026-02-01');
      expect(await last('later')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 46.5\n' +
          '  seat 2026-02-01..2026-02-15: 1 = 15.5\n  seat 2026-02-15..2026-03-01: 1 = 31',
      );
    });
  });

  describe('what is committed to for longer goes on', () => {
    const use = (customer: string, n: number, day: string) =>
      world.use(customer, 'calls', n, { at: `${day}T12:00:00Z` });

    it('where its line is followed by one that charges differently', async () => {
      const commitment = { commitment_amount: '300', commitment_duration: 'QUARTERLY', enable_true_up: true };
      await world.on('2026-01-01', () =>
        world.subscribe('term', 'Calls', {
          line_item_commitments: { [calls.id]: { ...commitment, overage_factor: '2' } },
        }),
      );
      await use('term', 100, '2026-01-05');
      await use('term', 50, '2026-02-05');
      await use('term', 25, '2026-02-20');
      await use('term', 60, '2026-03-05');
      await world.on('2026-02-10', () => reprice('term', 'calls', { amount: '2' }));
      await world.on('2026-03-01');
      await world.waitForPipeline();
      const shown = await world.post('/subscriptions/usage', { subscription_id: world.id('subscription term') });
      expect(Number(shown.amount)).to.equal(140);
      await world.on('2026-04-01');
      // 100, 50 and 50 are drawn before; 100 of 120 lie within.
      expect((await world.statements('term')).slice(1)).to.deep.equal([
        'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 100\n' +
          '  calls 2026-02-01..2026-02-10: 50 = 50\n  calls 2026-02-10..2026-03-01: 25 = 50',
        'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 140\n  calls 2026-03-01..2026-04-01: 60 = 140',
      ]);
      await use('term', 10, '2026-04-05');
      await world.on('2026-05-01');
      // The next term has begun with the first line's quarter.
      expect(await last('term')).to.contain('= 20\n');
    });

    it('where the line ends for good, what is lacking is charged once', async () => {
      const commitment = { commitment_amount: '300', commitment_duration: 'QUARTERLY', enable_true_up: true };
      await world.on('2026-01-01', () =>
        world.subscribe('lacking', 'Calls', { line_item_commitments: { [calls.id]: commitment } }),
      );
      await use('lacking', 100, '2026-01-05');
      await world.on('2026-01-10', () => reprice('lacking', 'calls', { amount: '2' }));
      await use('lacking', 10, '2026-01-12');
      await world.on('2026-01-20', async () => change('DELETE', (await line('lacking', 'calls'))!.id, {}));
      await world.on('2026-02-01');
      expect(await last('lacking')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 300\n' +
          '  calls 2026-01-01..2026-01-10: 100 = 100\n  calls 2026-01-10..2026-01-20: 10 = 200',
      );
    });

    it('where the periods of the subscription begin anew, of the subscription as a whole', async () => {
      const whole = { commitment_amount: '310', overage_factor: '2', enable_true_up: true };
      await world.on(
        '2026-01-01',
        () => world.subscribe('by month', 'Calls', whole),
        () => world.subscribe('by year', 'Calls', { ...whole, commitment_duration: 'ANNUAL' }),
      );
      for (const customer of ['by month', 'by year']) {
        await use(customer, 310, '2026-01-05');
        await use(customer, 40, '2026-02-05');
        await world.waitForPipeline();
      }
      await world.on('2026-02-08');
      for (const customer of ['by month', 'by year']) {
        const changed = toPlan('Calls by the quarter', { billing_period: 'QUARTERLY' });
        await world.post(path(customer, 'change/execute'), changed);
      }
      // 7 of 28 days: a commitment to 77.5. The year goes on, and is used up.
      const drafted = [await last('by month'), await last('by year')];
      expect(drafted.map((text) => text!.split('\n')[0])).to.deep.equal([
        'PRORATION DRAFT 2026-02-01..2026-02-08 = 77.5',
        'PRORATION DRAFT 2026-02-01..2026-02-08 = 80',
      ]);
      await world.finalize();
      expect([await last('by month'), await last('by year')]).to.deep.equal(
        drafted.map((text) => text!.replace('DRAFT', 'FINALIZED')),
      );
    });

    it('and periods that are longer than it are refused', async () => {
      const terms = { commitment_amount: '310', commitment_duration: 'QUARTERLY' };
      await world.on('2026-01-01', () => world.subscribe('too long', 'Calls', terms));
      const body = toPlan('Seat', { billing_period: 'ANNUAL' });
      const { status, body: answer } = await world.api.request('POST', path('too long', 'change/execute'), { body });
      expect([status, answer.details!.field]).to.deep.equal([400, 'billing_period']);
    });

    it('and a period that was cut keeps the free units of its own', async () => {
      await world.on('2026-01-01', () => world.subscribe('free', 'Free calls'));
      await use('free', 150, '2026-01-05');
      await use('free', 80, '2026-02-05');
      await world.on('2026-02-08');
      await world.post(
        path('free', 'change/execute'),
        toPlan('Free calls by the quarter', { billing_period: 'QUARTERLY' }),
      );
      await use('free', 90, '2026-02-20');
      await world.waitForPipeline();
      const drafted = await world.statements('free');
      expect(drafted).to.deep.equal([
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 50\n  calls 2026-01-01..2026-02-01: 50 = 50',
        'PRORATION SKIPPED 2026-02-01..2026-02-08 = 0\n  calls 2026-02-01..2026-02-08: 0 = 0',
      ]);
      await world.finalize();
      expect((await world.statements('free')).map((text) => text.split('\n')[1])).to.deep.equal(
        drafted.map((text) => text.split('\n')[1]),
      );
      const { current_usage } = (await world.get(`/customers/usage?customer_id=${world.id('customer free')}`))
        .features[0]!;
      expect(Number(current_usage)).to.equal(90);
    });
  });

  it('nothing ends before usage that was invoiced because it had reached a threshold', async () => {
    const start = () => world.subscribe('reached', 'Calls', { auto_invoice_threshold: '50' });
    await world.on('2026-01-01', start);
    await world.use('reached', 'calls', 60, { at: '2026-01-05T00:00:00Z' });
    world.at('2026-01-08');
    await world.waitForPipeline();
    await billThresholds(world.api.services, world.now);
    await world.on('2026-01-12');
    const { id } = (await line('reached', 'calls'))!;
    const early = '2026-01-03T00:00:00Z';
    const refused = [
      await world.api.request('DELETE', `/subscriptions/lineitems/${id}`, { body: { effective_from: early } }),
      await world.api.request('PUT', `/subscriptions/lineitems/${id}`, {
        body: { amount: '2', effective_from: early },
      }),
      await world.api.request('POST', path('reached', 'cancel'), {
        body: { cancellation_type: 'immediate', cancel_at: early },
      }),
    ];
    expect(refused.map(({ status, text }) => [status, text.includes('2026-01-08')])).to.deep.equal([
      [400, true],
      [400, true],
      [400, true],
    ]);
    await world.cancel('reached', { cancellation_type: 'immediate', cancel_at: '2026-01-10T00:00:00Z' });
    expect((await world.statements('reached')).map((text) => text.split('\n')[0])).to.deep.equal([
      'THRESHOLD_BILLING FINALIZED 2026-01-01..2026-01-08 = 60',
      'PRORATION SKIPPED 2026-01-01..2026-01-10 = 0',
    ]);
  });

  it('what waited for its first payment, and is cancelled, owes what opened it and nothing more', async () => {
    const terms = { collection_method: 'send_invoice', payment_behavior: 'default_incomplete' };
    await world.on('2026-01-01', () => world.subscribe('unpaid', 'Seat', terms));
    await world.on('2026-04-15');
    const cancelled = await world.cancel('unpaid', {
      cancellation_type: 'immediate',
      proration_behavior: 'create_prorations',
    });
    expect(cancelled.total_credit_amount).to.equal('0');
    expect(await world.statements('unpaid')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 31\n  seat 2026-01-01..2026-02-01: 1 = 31',
    ]);
  });

  it('what was charged up to a cancellation is given back up to it, and what was paid beyond is given back whole', async () => {
    const scheduled = {
      cancellation_type: 'scheduled_date',
      cancel_at: '2026-01-17T00:00:00Z',
      proration_behavior: 'create_prorations',
    };
    await world.on(
      '2026-01-01',
      () => world.subscribe('leaving', 'Seat'),
      () => world.subscribe('staying', 'Seat'),
    );
    await world.on('2026-01-02');
    for (const customer of ['leaving', 'staying']) {
      await world.cancel(customer, scheduled);
      const { id } = (await line(customer, 'seat'))!;
      const body = { type: 'quantity_change', quantity_change_params: { line_items: [{ id, quantity: '10' }] } };
      await world.post(path(customer, 'modify/execute'), body);
      // 30 of 31 days of one seat, and 15 of ten.
      expect(await last(customer)).to.equal(
        'SUBSCRIPTION_UPDATE FINALIZED 2026-01-02..2026-02-01 = 120\n' +
          '  seat (unused time) 2026-01-02..2026-02-01: 1 = -30\n  seat 2026-01-02..2026-01-17: 10 = 150',
      );
    }
    await world.on('2026-01-10');
    const { schedules } = await world.get(path('staying', 'schedules'));
    await world.post(`/subscriptions/schedules/${schedules[0]!.id}/cancel`, {});
    expect(await last('staying')).to.contain('2026-01-17..2026-02-01 = 150');
    await world.on('2026-01-18');
    expect(await world.statements('leaving')).to.have.lengthOf(2);
  });

  it('a line that had ended before the periods changed keeps its own', async () => {
    const arrears = fixed('31', { display_name: 'fee' });
    await world.plan('First', [arrears, usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('Second', [arrears, usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('Weekly', [fixed('7', { billing_period: 'WEEKLY', display_name: 'week' })]);
    await world.on('2026-01-01', () => world.subscribe('often', 'First'));
    await world.on('2026-01-25', () => world.post(path('often', 'change/execute'), toPlan('Second')));
    await world.use('often', 'calls', 5, { at: '2026-01-30T00:00:00Z' });
    await world.on('2026-02-01', () => world.finalize());
    await world.on('2026-02-05', () => world.post(path('often', 'change/execute'), toPlan('First')));
    await world.on('2026-02-12');
    await world.post(path('often', 'change/execute'), toPlan('Weekly', { billing_period: 'WEEKLY' }));
    await world.finalize();
    const [closed] = (await world.statements('often')).filter((text) => text.startsWith('PRORATION'));
    expect(closed).to.equal(
      'PRORATION FINALIZED 2026-02-01..2026-02-12 = 12.18\n' +
        '  fee 2026-02-01..2026-02-05: 1 = 4.43\n  calls 2026-02-01..2026-02-05: 0 = 0\n' +
        '  fee 2026-02-05..2026-02-12: 1 = 7.75\n  calls 2026-02-05..2026-02-12: 0 = 0',
    );
    // Its weeks would be billed by the other tests.
    await world.cancel('often');
  });

  describe('behind a scheduler that is late', () => {
    it('a preview says what is then done, and writes nothing', async () => {
      await world.on('2026-01-01', () => world.subscribe('seen', 'Seat'));
      await world.on('2026-02-01', () => world.finalize());
      await world.on('2026-02-28');
      world.at('2026-03-08');
      const before = await world.subscription('seen');
      const planned = await world.post(path('seen', 'change/v2/preview'), {
        target_plan_id: world.id('plan Large'),
        proration_behavior: 'create_prorations',
      });
      const { id } = (await line('seen', 'seat'))!;
      const body = { type: 'quantity_change', quantity_change_params: { line_items: [{ id, quantity: '3' }] } };
      const previewed = await world.post(path('seen', 'modify/preview'), body);
      expect(previewed.subscription!.current_period_start).to.contain('2026-03-01');
      expect(previewed.changed_resources.invoices).to.have.lengthOf(0);
      expect(planned.changed_resources.invoices).to.have.lengthOf(0);
      expect(await world.subscription('seen')).to.deep.equal(before);
      expect(await world.statements('seen')).to.have.lengthOf(2);
      const done = await world.post(path('seen', 'modify/execute'), body);
      expect(done.changed_resources.invoices).to.have.lengthOf(0);
      expect(await last('seen'))
        .to.contain('SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01')
        .and.to.contain(': 3 =');
    });

    it('a cancellation at the end of the period means the one that runs', async () => {
      await world.on('2026-01-01', () => world.subscribe('end', 'Seat'));
      world.at('2026-02-10');
      const cancelled = await world.cancel('end', { cancellation_type: 'end_of_period' });
      expect(cancelled.effective_date).to.contain('2026-03-01');
    });

    it('a plan change at the end of a period waits with its invoice for the usage', async () => {
      await world.on('2026-01-01', () => world.subscribe('waits', 'Calls'));
      await world.on('2026-01-10');
      await world.post(path('waits', 'change/execute'), toPlan('Seat', { change_at: 'end_of_period' }));
      await world.use('waits', 'calls', 5, { at: '2026-01-20T00:00:00Z' });
      const previewed = await world.preview('waits');
      expect(previewed.line_items.map(({ display_name, amount }) => [display_name, amount])).to.deep.equal([
        ['calls', '5'],
        ['seat', '31'],
      ]);
      await world.pausePipeline();
      await world.use('waits', 'calls', 7, { at: '2026-01-21T00:00:00Z' });
      world.at('2026-02-01');
      const report = await billDuePeriods(world.api.services, world.now);
      expect(report.waiting).to.include(world.id('subscription waits'));
      expect((await world.subscription('waits')).plan_id).to.equal(world.id('plan Calls'));
      expect((await world.get(path('waits', 'schedules'))).schedules[0]!.status).to.equal('pending');
      await world.resumePipeline();
      await world.on('2026-02-01');
      expect((await world.subscription('waits')).plan_id).to.equal(world.id('plan Seat'));
      expect(await last('waits')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 43\n' +
          '  calls 2026-01-01..2026-02-01: 12 = 12\n  seat 2026-02-01..2026-03-01: 1 = 31',
      );
    });
  });
});
