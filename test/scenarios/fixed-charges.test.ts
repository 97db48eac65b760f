/** What the calendar alone decides: anchors, first periods, advance and arrears, ends. No event is sent. */
import { expect } from 'chai';
import { fixed, startWorld, summarizeInvoice, type World } from '../support/world.ts';

describe('scenario: fixed charges', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.plan('Base', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
      fixed('5', { display_name: 'support' }),
    ]);
    await world.plan('Quarterly', [
      fixed('90', { invoice_cadence: 'ADVANCE', billing_period: 'QUARTERLY', display_name: 'quarter' }),
    ]);
    await world.plan('Yearly', [
      fixed('1200', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL', display_name: 'year' }),
      fixed('10', { display_name: 'monthly' }),
    ]);
  });
  after(() => world.stop());

  it('a month that begins on the 31st clamps, and comes back to the 31st', async () => {
    await world.on('2026-01-31', () => world.subscribe('anniversary', 'Base'));
    await world.on('2026-02-28');
    await world.on('2026-03-31');
    await world.on('2026-04-30');
    expect(await world.statements('anniversary')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-31..2026-02-28 = 31\n  seat 2026-01-31..2026-02-28: 1 = 31',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-31..2026-02-28 = 36\n' +
        '  seat 2026-02-28..2026-03-31: 1 = 31\n  support 2026-01-31..2026-02-28: 1 = 5',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-28..2026-03-31 = 36\n' +
        '  seat 2026-03-31..2026-04-30: 1 = 31\n  support 2026-02-28..2026-03-31: 1 = 5',
      'SUBSCRIPTION_CYCLE DRAFT 2026-03-31..2026-04-30 = 36\n' +
        '  seat 2026-04-30..2026-05-31: 1 = 31\n  support 2026-03-31..2026-04-30: 1 = 5',
    ]);
  });

  it('calendar billing shortens the first period, in advance and in arrears', async () => {
    await world.on('2026-05-15', () => world.subscribe('calendar', 'Base', { billing_cycle: 'calendar' }));
    await world.on('2026-06-01');
    await world.on('2026-07-01');
    const [opening, first, second] = await world.statements('calendar');
    expect(opening).to.equal(
      'SUBSCRIPTION_CREATE FINALIZED 2026-05-15..2026-06-01 = 17\n  seat 2026-05-15..2026-06-01: 1 = 17', // 17 of 31 days
    );
    expect(first).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-05-15..2026-06-01 = 33.74\n' +
        '  seat 2026-06-01..2026-07-01: 1 = 31\n  support 2026-05-15..2026-06-01: 1 = 2.74', // 5 × 17/31
    );
    expect(second).to.contain('2026-06-01..2026-07-01 = 36');
  });

  it('an anchor that lies 17 months ahead: quarters on its grid, and the first part of one for its share', async () => {
    const terms = { billing_period: 'QUARTERLY', billing_anchor: '2027-06-01T00:00:00Z' };
    await world.on('2026-01-01', () => world.subscribe('far', 'Quarterly', terms));
    await world.on('2026-06-01');
    expect(await world.statements('far')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-03-01 = 59\n  quarter 2026-01-01..2026-03-01: 1 = 59', // 59 of 90 days
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-03-01 = 90\n  quarter 2026-03-01..2026-06-01: 1 = 90',
      'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-06-01 = 90\n  quarter 2026-06-01..2026-09-01: 1 = 90',
    ]);
  });

  it('midnight is the local one, through a clock change', async () => {
    await world.on('2026-10-24T22:00:00Z', () =>
      world.subscribe('berlin', 'Base', {
        billing_cycle: 'calendar',
        billing_period: 'DAILY',
        timezone: 'Europe/Berlin',
      }),
    );
    await world.on('2026-10-25T23:00:00Z'); // 25 October has 25 hours there
    const subscription = await world.subscription('berlin');
    expect(new Date(subscription.current_period_start).toISOString()).to.equal('2026-10-25T23:00:00.000Z');
    expect(new Date(subscription.current_period_end).toISOString()).to.equal('2026-10-26T23:00:00.000Z');
  });

  it('a yearly charge on a monthly subscription comes once a year', async () => {
    await world.on('2024-01-15', () => world.subscribe('yearly', 'Yearly'));
    await world.on('2025-02-15');
    const totals = (await world.invoices('yearly')).map((invoice) => Number(invoice.total));
    expect(totals).to.deep.equal([1200, ...Array(11).fill(10), 1210, 10]);
  });

  it('catches up after a pause: every period that ended gets its invoice', async () => {
    await world.on('2026-01-01', () => world.subscribe('pause', 'Base'));
    await world.on('2026-04-10');
    expect(await world.statements('pause')).to.have.length(4);
    expect((await world.subscription('pause')).current_period_end).to.contain('2026-05-01');
  });

  it('ends at its end date: arrears for the last part, nothing in advance beyond it', async () => {
    await world.on('2026-01-01', () => world.subscribe('ending', 'Base', { end_date: '2026-02-15T00:00:00Z' }));
    await world.on('2026-03-01');
    const [, first, last] = await world.statements('ending');
    expect(first).to.contain('seat 2026-02-01..2026-02-15: 1 = 15.5'); // 14 of 28 days
    expect(last).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-02-15 = 2.5\n  support 2026-02-01..2026-02-15: 1 = 2.5',
    );
    expect((await world.subscription('ending')).subscription_status).to.equal('cancelled');
    expect((await world.bill()).billed).to.equal(0);
  });

  it('an immediate cancellation invoices the arrears up to the date', async () => {
    await world.on('2026-01-01', () => world.subscribe('leaver', 'Base'));
    await world.on('2026-02-15', () => world.cancel('leaver'));
    const said = await world.statements('leaver');
    expect(said.at(-1)).to.equal(
      'PRORATION DRAFT 2026-02-01..2026-02-15 = 2.5\n  support 2026-02-01..2026-02-15: 1 = 2.5',
    );
    expect(said).to.have.length(3);
  });

  it('a preview says what the draft will say', async () => {
    await world.on('2026-01-10', () => world.subscribe('previewed', 'Base'));
    const preview = await world.preview('previewed');
    await world.on('2026-02-10');
    const draft = (await world.invoices('previewed')).at(-1);
    expect(summarizeInvoice(preview)).to.deep.equal(summarizeInvoice(draft!));
    expect(preview.id).to.equal('');
  });
});
