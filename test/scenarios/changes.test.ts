/** What is changed inside a period: credits and charges that net, and what the invoices after them say. */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: changes inside a period', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Seats', [
      fixed('50', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
      fixed('31', { display_name: 'support' }),
      usage('calls', '0.01', { display_name: 'calls' }),
    ]);
    await world.plan('Yearly', [
      fixed('365', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL', display_name: 'licence' }),
    ]);
  });
  after(() => world.stop());

  const lineOf = async (customer: string, name: string) => {
    const { line_items } = await world.subscription(customer);
    return line_items.find((line) => line.display_name === name && line.end_date === null);
  };
  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const quantity = async (customer: string, name: string, to: string, effective_date?: string) => ({
    type: 'quantity_change',
    quantity_change_params: { line_items: [{ id: (await lineOf(customer, name))!.id, quantity: to, effective_date }] },
  });
  const modify = async (customer: string, body: object) =>
    world.post(path(customer, 'modify/execute'), body as Record<string, unknown>);
  const wallets = async (customer: string) => world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);

  // First: it would bill what goes on of the others for a year.
  it('a yearly line keeps its year', async () => {
    await world.on('2026-01-01', () => world.subscribe('yearly', 'Yearly'));
    await world.on('2026-03-02');
    await modify('yearly', await quantity('yearly', 'licence', '2'));
    await world.on('2027-01-01');
    expect((await world.statements('yearly')).filter((text) => !text.includes('SKIPPED'))).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 365\n  licence 2026-01-01..2027-01-01: 1 = 365',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-03-02..2027-01-01 = 305\n' +
        '  licence (unused time) 2026-03-02..2027-01-01: 1 = -305\n  licence 2026-03-02..2027-01-01: 2 = 610',
      'SUBSCRIPTION_CYCLE DRAFT 2026-12-01..2027-01-01 = 730\n  licence 2027-01-01..2028-01-01: 2 = 730',
    ]);
  });

  it('more seats on the 16th: unused time is credited, the new quantity charged, on one invoice', async () => {
    await world.on('2026-01-01', () => world.subscribe('more', 'Seats'));
    await world.on('2026-01-16');
    const body = await quantity('more', 'seat', '3');
    const preview = await world.post(path('more', 'modify/preview'), body);
    const { changed_resources } = await modify('more', body);
    expect(preview.changed_resources.invoices[0]!.invoice!.total).to.equal('51.61');
    expect(changed_resources.invoices[0]).to.deep.include({ action: 'created', status: 'issued' });
    await world.on('2026-02-01');
    expect(await world.statements('more')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 50\n  seat 2026-01-01..2026-02-01: 1 = 50',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-16..2026-02-01 = 51.61\n' +
        '  seat (unused time) 2026-01-16..2026-02-01: 1 = -25.81\n  seat 2026-01-16..2026-02-01: 3 = 77.42',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 181\n' +
        '  support 2026-01-01..2026-02-01: 1 = 31\n  calls 2026-01-01..2026-02-01: 0 = 0\n  seat 2026-02-01..2026-03-01: 3 = 150',
    ]);
  });

  it('what a credit note gave back is not given back by a change again, nor the other way round', async () => {
    world.at('2026-01-01');
    await world.subscribe('noted', 'Seats');
    const [opening] = await world.invoices('noted');
    const credit = (amount: string) => {
      const line_items = [{ invoice_line_item_id: opening!.line_items[0]!.id, amount }];
      return world.api.request('POST', '/creditnotes', {
        body: { invoice_id: opening!.id, reason: 'ORDER_CHANGE', line_items },
      });
    };
    expect((await credit('40')).body.invoice!.amount_due).to.equal('10');
    world.at('2026-01-16');
    const { changed_resources } = await modify('noted', await quantity('noted', 'seat', '3'));
    // The unused half of 50 is 25.81, of which 10 are left.
    expect(changed_resources.invoices[0]!.invoice!.total).to.equal('67.42');
    const more = await credit('1');
    expect([more.status, more.body.details!.max_allowed]).to.deep.equal([400, '0']);
  });

  it('fewer seats: what comes to less than nothing goes to the prepaid wallet', async () => {
    await world.on('2026-01-01', () => world.subscribe('fewer', 'Seats'));
    await world.on('2026-01-01', async () => modify('fewer', await quantity('fewer', 'seat', '3')));
    await world.pay('fewer');
    await world.on('2026-01-16');
    const { changed_resources } = await modify('fewer', await quantity('fewer', 'seat', '1'));
    const { action, wallet_transaction } = changed_resources.invoices[0]!;
    expect([action, wallet_transaction!.amount]).to.deep.equal(['wallet_credit', '51.61']);
    expect((await wallets('fewer')).map(({ balance, currency }) => `${balance} ${currency}`)).to.deep.equal([
      '51.61 usd',
    ]);
    await world.on('2026-02-01');
    expect((await world.statements('fewer')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-01..2026-02-01 = 100\n' +
        '  seat (unused time) 2026-01-01..2026-02-01: 1 = -50\n  seat 2026-01-01..2026-02-01: 3 = 150',
      'SUBSCRIPTION_UPDATE SKIPPED 2026-01-16..2026-02-01 = 0\n' +
        '  seat (unused time) 2026-01-16..2026-02-01: 3 = -77.42\n  seat 2026-01-16..2026-02-01: 1 = 25.81',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 81\n' +
        '  support 2026-01-01..2026-02-01: 1 = 31\n  calls 2026-01-01..2026-02-01: 0 = 0\n  seat 2026-02-01..2026-03-01: 1 = 50',
    ]);
  });

  it('in arrears each quantity is charged for its own time', async () => {
    await world.on('2026-01-01', () => world.subscribe('arrears', 'Seats'));
    await world.on('2026-01-11');
    const { changed_resources } = await modify('arrears', await quantity('arrears', 'support', '2'));
    expect(changed_resources.invoices).to.deep.equal([]);
    await world.on('2026-02-01');
    expect((await world.statements('arrears')).at(-1))
      .to.contain('  support 2026-01-01..2026-01-11: 1 = 10\n')
      .and.to.contain('  support 2026-01-11..2026-02-01: 2 = 42');
  });

  it('while the invoice that opens the period is a draft, it carries the change itself', async () => {
    await world.on('2026-01-01', () => world.subscribe('draft', 'Seats'));
    await world.on('2026-02-01');
    await world.on('2026-02-15');
    const { changed_resources } = await modify('draft', await quantity('draft', 'seat', '3'));
    expect(changed_resources.invoices).to.deep.equal([]);
    await world.finalize();
    await world.on('2026-03-01');
    const [, first, second] = await world.statements('draft');
    expect(first)
      .to.contain('seat 2026-02-01..2026-02-15: 1 = 25\n')
      .and.to.contain('seat 2026-02-15..2026-03-01: 3 = 75');
    expect(second).to.contain('seat 2026-03-01..2026-04-01: 3 = 150').and.not.to.contain('2026-02-15');
  });

  it('a cancellation that prorates gives back what was charged in advance and is not used, and no more', async () => {
    await world.on('2026-01-01', () => world.subscribe('leaver', 'Seats'));
    await world.pay('leaver');
    await world.on('2026-01-16');
    const cancel = { cancellation_type: 'immediate', proration_behavior: 'create_prorations' };
    const answer = await world.cancel('leaver', cancel);
    expect(answer).to.deep.include({ status: 'cancelled', total_credit_amount: '25.81' });
    expect(
      answer.proration_details.map((detail) => [detail.original_amount, detail.credit_amount, detail.proration_days]),
    ).to.deep.equal([['50', '25.81', 16]]);
    expect((await wallets('leaver'))[0]!.balance).to.equal('25.81');
    expect((await world.statements('leaver')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_UPDATE SKIPPED 2026-01-16..2026-02-01 = 0\n  seat (unused time) 2026-01-16..2026-02-01: 1 = -25.81',
      'PRORATION DRAFT 2026-01-01..2026-01-16 = 15\n  support 2026-01-01..2026-01-16: 1 = 15\n  calls 2026-01-01..2026-01-16: 0 = 0',
    ]);
  });

  it('a cancellation while the scheduler was away: what it drafts of the period before charges ahead up to the end, and no further', async () => {
    await world.on('2026-01-01', () => world.subscribe('away', 'Seats'));
    world.at('2026-02-11');
    await world.waitForPipeline();
    await world.cancel('away');
    const drafted = await world.statements('away');
    expect(drafted.slice(1)).to.deep.equal([
      // 50 × 10/28
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 48.86\n' +
        '  seat 2026-02-01..2026-02-11: 1 = 17.86\n  support 2026-01-01..2026-02-01: 1 = 31\n  calls 2026-01-01..2026-02-01: 0 = 0',
      // 31 × 10/28
      'PRORATION DRAFT 2026-02-01..2026-02-11 = 11.07\n' +
        '  support 2026-02-01..2026-02-11: 1 = 11.07\n  calls 2026-02-01..2026-02-11: 0 = 0',
    ]);
    await world.finalize();
    expect(await world.statements('away')).to.deep.equal(drafted.map((text) => text.replace('DRAFT', 'FINALIZED')));
  });

  it('a cancellation that is scheduled is undone: what was charged to its date is charged on', async () => {
    await world.on('2026-01-01', () => world.subscribe('back', 'Seats'));
    const cancelled = await world.cancel('back', {
      cancellation_type: 'scheduled_date',
      cancel_at: '2026-02-15T00:00:00Z',
    });
    expect(cancelled.status).to.equal('active');
    await world.on('2026-02-01');
    await world.finalize();
    expect((await world.subscription('back')).current_period_end).to.equal('2026-02-15T00:00:00Z');
    const { schedules } = await world.get(path('back', 'schedules'));
    expect(schedules.map((one) => [one.schedule_type, one.status, one.days_until_execution])).to.deep.equal([
      ['cancellation', 'pending', 14],
    ]);
    await world.post(`/subscriptions/schedules/${schedules[0]!.id}/cancel`, {});
    const { cancel_at, current_period_end } = await world.subscription('back');
    expect([cancel_at, current_period_end]).to.deep.equal([null, '2026-03-01T00:00:00Z']);
    await world.on('2026-03-01');
    const said = await world.statements('back');
    expect(said[1]).to.contain('seat 2026-02-01..2026-02-15: 1 = 25');
    expect(said[2]).to.equal(
      'SUBSCRIPTION_UPDATE FINALIZED 2026-02-15..2026-03-01 = 25\n  seat 2026-02-15..2026-03-01: 1 = 25',
    );
    expect(said[3])
      .to.contain('seat 2026-03-01..2026-04-01: 1 = 50')
      .and.to.contain('support 2026-02-01..2026-03-01: 1 = 31');
    expect(said).to.have.length(4);
  });

  it('a cancellation on a date gives back then what it was charged for the time behind it', async () => {
    await world.on('2026-01-01', () => world.subscribe('dated', 'Seats'));
    await world.pay('dated');
    const when = { cancellation_type: 'scheduled_date', cancel_at: '2026-01-16T00:00:00Z' };
    const answer = await world.cancel('dated', { ...when, proration_behavior: 'create_prorations' });
    expect(answer.total_credit_amount).to.equal('0');
    await world.on('2026-01-16');
    expect((await wallets('dated'))[0]!.balance).to.equal('25.81');
    expect((await world.subscription('dated')).subscription_status).to.equal('cancelled');
  });

  it('a cancellation that has happened is done in its schedule', async () => {
    await world.on('2026-01-01', () => world.subscribe('gone', 'Seats'));
    await world.cancel('gone', { cancellation_type: 'end_of_period' });
    await world.on('2026-02-01');
    const { schedules } = await world.get(path('gone', 'schedules'));
    expect(schedules.map((one) => [one.status, one.can_be_cancelled])).to.deep.equal([['executed', false]]);
  });
});
