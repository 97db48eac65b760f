/** Changes of what is to be cancelled, or was changed before in the same period: each day is charged once, and given back once. */
import { expect } from 'chai';
import type { Invoice } from '../support/answers.ts';
import { fixed, startWorld, summarizeInvoice, usage, type World } from '../support/world.ts';

describe('scenario: changes after changes', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Seats', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    const sold = (amount: string) => [
      fixed(amount, { display_name: 'fee' }),
      usage('calls', '1', { display_name: 'calls' }),
    ];
    await world.plan('Year', [
      fixed('620', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL', display_name: 'year' }),
    ]);
    await world.plan('Fees', sold('31'));
    await world.plan('Larger fees', sold('62'));
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const total = async (customer: string): Promise<number> => {
    const invoices = await world.invoices(customer);
    return Number(invoices.reduce((sum, { subtotal }) => sum + Number(subtotal), 0).toFixed(2));
  };
  const toCancel = async (customer: string) => {
    await world.on('2026-01-01', () => world.subscribe(customer, 'Seats'));
    await world.on('2026-01-02');
    await world.cancel(customer, {
      cancellation_type: 'scheduled_date',
      cancel_at: '2026-01-17T00:00:00Z',
      proration_behavior: 'create_prorations',
    });
  };
  const tenSeats = async (customer: string) => {
    const { id } = (await world.subscription(customer)).line_items[0]!;
    const params = { line_items: [{ id, quantity: '10' }] };
    await world.post(path(customer, 'modify/execute'), { type: 'quantity_change', quantity_change_params: params });
  };

  it('what is added while a cancellation is scheduled is charged up to it, and not given back', async () => {
    await toCancel('added');
    const price = {
      type: 'FIXED',
      price_unit_type: 'FIAT',
      billing_model: 'FLAT_FEE',
      billing_period: 'MONTHLY',
      invoice_cadence: 'ADVANCE',
      amount: '310',
    };
    await world.post(path('added', 'lineitems'), { price });
    expect(await total('added')).to.equal(31 + 150);
    await world.on('2026-02-01');
    expect(await total('added'), 'sixteen days of the seat').to.equal(16 + 150);
  });

  it('what is changed while a cancellation is scheduled, too', async () => {
    await toCancel('changed');
    await tenSeats('changed');
    await world.on('2026-02-01');
    expect(await total('changed'), 'a day of one, fifteen of ten').to.equal(1 + 150);
  });

  it('a cancellation that is taken back after a change charges the period once', async () => {
    await toCancel('undone');
    await tenSeats('undone');
    await world.on('2026-01-10');
    const { schedules } = await world.get(path('undone', 'schedules'));
    await world.post(`/subscriptions/schedules/${schedules[0]!.id}/cancel`, {});
    await world.on('2026-01-31');
    expect(await total('undone'), 'a day of one, thirty of ten').to.equal(301);
  });

  it('also one that gave no credits: what lay behind it of the line that was changed is given back', async () => {
    await world.on('2026-01-01', () => world.subscribe('kept', 'Seats'));
    const without = { cancellation_type: 'scheduled_date', cancel_at: '2026-01-17T00:00:00Z' };
    const undo = async () => {
      const { schedules } = await world.get(path('kept', 'schedules'));
      const { id } = schedules.find(({ status }) => status === 'pending')!;
      await world.post(`/subscriptions/schedules/${id}/cancel`, {});
    };
    await world.cancel('kept', without);
    await tenSeats('kept');
    expect(await total('kept'), 'sixteen days of ten, and the rest of the one').to.equal(160 + 15);
    await world.on('2026-01-10', undo);
    expect(await total('kept'), 'ten from the first day on').to.equal(310);
    // What ended before the cancellation had given back all of its rest.
    await world.cancel('kept', without);
    await undo();
    expect(await total('kept')).to.equal(310);
    const said = (await world.invoices('kept')).at(-1)!.line_items.map(({ amount }) => amount);
    expect(said).to.deep.equal(['-15', '150']);
  });

  it('periods that begin anew after a plan change charge what was invoiced no second time', async () => {
    await world.on('2026-01-01', () => world.subscribe('restarted', 'Fees'));
    const change = (plan: string) =>
      world.post(path('restarted', 'change/v2/execute'), {
        target_plan_id: world.id(`plan ${plan}`),
        proration_behavior: 'create_prorations',
      });
    await world.on('2026-01-25', () => change('Larger fees'));
    await world.use('restarted', 'calls', 5, { at: '2026-01-30T00:00:00Z' });
    await world.on('2026-02-01');
    expect(await total('restarted'), '24 days of 31, 7 of 62, and the calls').to.equal(24 + 14 + 5);
    await world.on('2026-02-05', () => change('Fees'));
    await world.on('2026-02-12');
    await world.post(path('restarted', 'change/execute'), {
      target_plan_id: world.id('plan Larger fees'),
      proration_behavior: 'create_prorations',
      billing_cadence: 'RECURRING',
      billing_period: 'WEEKLY',
      billing_cycle: 'anniversary',
    });
    const last = (await world.invoices('restarted')).at(-1);
    expect(saidIn(last!)).to.deep.equal(['8.86', '7.75']);
  });

  it('the next invoice is previewed with the plan that the end of the period brings', async () => {
    await world.on('2026-01-01', () => world.subscribe('next', 'Fees'));
    await world.on('2026-01-10', () => world.use('next', 'calls', 3));
    const request = { target_plan_id: world.id('plan Seats'), proration_behavior: 'none', change_at: 'end_of_period' };
    await world.post(path('next', 'change/v2/execute'), request);
    const preview = summarizeInvoice(await world.preview('next'));
    expect(preview.lines.map(({ name, amount }) => [name, amount])).to.deep.include(['seat', '31']);
    await world.on('2026-02-01');
    expect(summarizeInvoice((await world.invoices('next')).at(-1)!)).to.deep.equal(preview);
  });

  it('also where its periods are others, and the one invoice has the arrears and what comes', async () => {
    await world.on('2026-01-01', () => world.subscribe('yearly', 'Fees'));
    await world.on('2026-01-10', () => world.use('yearly', 'calls', 3));
    const request = { target_plan_id: world.id('plan Year'), proration_behavior: 'none', change_at: 'end_of_period' };
    const periods = { billing_cadence: 'RECURRING', billing_period: 'ANNUAL', billing_cycle: 'anniversary' };
    await world.post(path('yearly', 'change/execute'), { ...request, ...periods });
    const preview = summarizeInvoice(await world.preview('yearly'));
    await world.on('2026-02-01');
    expect(await world.statements('yearly')).to.deep.equal([
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 654\n' +
        '  fee 2026-01-01..2026-02-01: 1 = 31\n  calls 2026-01-01..2026-02-01: 3 = 3\n  year 2026-02-01..2027-02-01: 1 = 620',
    ]);
    expect(summarizeInvoice((await world.invoices('yearly')).at(-1)!)).to.deep.equal(preview);
  });

  it('what has ended by a schedule says when it ended, as what is cancelled at once', async () => {
    await world.on('2026-01-01', () => world.subscribe('ended', 'Seats'));
    await world.cancel('ended', { cancellation_type: 'end_of_period' });
    await world.on('2026-02-01');
    const { end_date, line_items, subscription_status } = await world.subscription('ended');
    expect([subscription_status, end_date]).to.deep.equal(['cancelled', '2026-02-01T00:00:00Z']);
    expect(line_items.map((line) => line.end_date)).to.deep.equal(['2026-02-01T00:00:00Z']);
  });

  describe('several without proration at one instant', () => {
    const lineOf = async (customer: string): Promise<string> =>
      (await world.subscription(customer)).line_items.find((line) => !line.end_date)!.id;
    const price = (id: string, amount: string, effective_from?: string) =>
      world.api.request('PUT', `/subscriptions/lineitems/${id}`, {
        body: { amount, proration_behavior: 'none', ...(effective_from ? { effective_from } : {}) },
      });

    before(async () => {
      await world.on('2026-03-01');
      for (const customer of ['corrected', 'moved']) await world.subscribe(customer, 'Seats');
    });

    it('what was paid pays for the last of them, too, and what it has not served is given back', async () => {
      await world.on('2026-03-16');
      for (const amount of ['62', '40']) {
        const changed = await price(await lineOf('corrected'), amount, '2026-03-10T00:00:00Z');
        expect(changed.status, changed.text).to.equal(200);
      }
      expect(await total('corrected')).to.equal(31);
      await world.cancel('corrected', { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
      expect(await total('corrected'), 'fifteen days').to.equal(15);
    });

    it('also where they are of other plans, or come after one that was prorated', async () => {
      await world.plan('Biz', [fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'biz' })]);
      const change = (plan: string, proration_behavior: string) =>
        world.post(path('moved', 'change/v2/execute'), {
          target_plan_id: world.id(`plan ${plan}`),
          proration_behavior,
        });
      await change('Biz', 'create_prorations');
      await change('Seats', 'none');
      await change('Biz', 'none');
      expect(await total('moved')).to.equal(31 - 16 + 32);
      await world.on('2026-03-24');
      await world.cancel('moved', { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
      expect(await total('moved'), 'fifteen days at 1, eight at 2').to.equal(31);
    });

    const yearly = () => ({
      target_plan_id: world.id('plan Year'),
      billing_cadence: 'RECURRING',
      billing_period: 'ANNUAL',
      billing_cycle: 'anniversary',
      proration_behavior: 'none',
    });

    it('nor is what goes on beside another plan charged again in new periods', async () => {
      const price = { ...fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'extra' }), price_unit_type: 'FIAT' };
      await world.subscribe('extra', 'Seats', {
        start_date: '2026-03-01T00:00:00Z',
        line_items: [{ price: { ...price, billing_period: 'MONTHLY' } }],
      });
      await world.post(path('extra', 'change/execute'), yearly());
      const { line_items } = (await world.invoices('extra')).at(-1)!;
      const extra = line_items.filter((line) => line.display_name === 'extra');
      expect(extra.map((line) => line.period_start!.slice(0, 10))[0]).to.equal('2026-04-01');
    });

    it('a year that begins inside a month is charged in full, and the rest of the month is not given back', async () => {
      await world.subscribe('inside', 'Seats', { start_date: '2026-03-01T00:00:00Z' });
      await world.post(path('inside', 'change/execute'), yearly());
      expect(await total('inside')).to.equal(31 + 620);
      const [year] = (await world.subscription('inside')).line_items.filter((line) => !line.end_date);
      expect([year!.display_name, year!.start_date.slice(0, 10)]).to.deep.equal(['year', '2026-03-24']);
    });

    it('nor a month charged that a year takes the place of at the instant at which it begins', async () => {
      await world.subscribe('edge', 'Seats', { start_date: '2026-03-01T00:00:00Z' });
      await world.on('2026-04-01');
      await world.post(path('edge', 'change/execute'), yearly());
      expect(await total('edge')).to.equal(31 + 620);
    });
  });
});

/** 62 × 4/28 and 31 × 7/28. */
function saidIn({ line_items }: Invoice): string[] {
  return line_items.filter(({ amount }) => Number(amount) !== 0).map(({ amount }) => amount);
}
