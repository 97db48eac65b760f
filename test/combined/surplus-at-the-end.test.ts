/**
 * A surplus that was invoiced before a period was over (docs/rules/invoices.md, "Before the period is over") comes back however the
 * subscription ends, and comes off the next invoice of a threshold. 8 units at $10 with a threshold of 50 are invoiced, $80; then 3 are
 * taken back: the usage costs $50, and $30 are carried forward.
 */
import { expect } from 'chai';
import { billLateUsage } from '../../actions/lifecycle/billing/bill-late-usage.ts';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('scenario: an overbilled subscription ends', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Use', [usage('calls', '10', { display_name: 'calls' })]);
  });
  after(() => world.stop());
  beforeEach(() => world.at('2026-01-01T00:00:00Z'));

  const inWallet = async (customer: string) => {
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    return wallets.map(({ balance }) => balance);
  };
  const thresholdOn = async (day: string) => {
    world.at(day);
    await world.waitForPipeline();
    const { failed } = await billThresholds(world.api.services, world.now);
    expect(failed).to.deep.equal([]);
  };
  const last = async (customer: string) => (await world.statements(customer)).at(-1);

  /** Each was invoiced 80 on the 5th, and has usage of 50 by the end of the month. */
  async function overbilled(paid: readonly string[], unpaid: readonly string[] = []): Promise<void> {
    const all = [...paid, ...unpaid];
    const use = (n: number, at: string) =>
      world.send(all.map((customer) => world.event(customer, 'calls', { n, at: `${at}T00:00:00Z` })));
    world.at('2026-01-01T00:00:00Z');
    for (const customer of all) await world.subscribe(customer, 'Use', { auto_invoice_threshold: '50' });
    await use(8, '2026-01-02');
    await thresholdOn('2026-01-05T00:00:00Z');
    for (const customer of paid) await world.pay(customer);
    await use(-3, '2026-01-06');
    world.at('2026-01-07T00:00:00Z');
    await world.waitForPipeline();
  }

  describe('and the scheduler runs', () => {
    const forgiven = { cancel_immediately_inovice_policy: 'skip' };
    const AT_ONCE = [
      ['at once, inside the period', '2026-01-20', {}],
      ['at once, and its arrears are forgiven', '2026-01-20', forgiven],
      ['at once, exactly where the next period begins', '2026-02-01', {}],
      ['where the next period begins, and is forgiven', '2026-02-01', forgiven],
      ['at once, a day into the next period', '2026-02-02', {}],
    ] as const;
    const SCHEDULED = [
      ['at the end of its period', { cancellation_type: 'end_of_period' }],
      ['on the date of the boundary', { cancellation_type: 'scheduled_date', cancel_at: '2026-02-01T00:00:00Z' }],
      ['on a later date', { cancellation_type: 'scheduled_date', cancel_at: '2026-02-10T00:00:00Z' }],
    ] as const;
    const PAID = [...AT_ONCE, ...SCHEDULED].map(([ends]) => ends);

    // All of them live through these weeks beside each other.
    before(async () => {
      await overbilled(PAID, ['unpaid']);
      for (const [ends, fields] of SCHEDULED) await world.cancel(ends, fields);
      for (const day of ['2026-01-20', '2026-02-01', '2026-02-02', '2026-02-10']) {
        await world.on(day);
        for (const [ends, when, fields] of AT_ONCE)
          if (when === day) await world.cancel(ends, { cancellation_type: 'immediate', ...fields });
        if (day === '2026-02-01') await world.cancel('unpaid');
        await world.finalize();
      }
    });

    for (const ends of PAID)
      it(`${ends}: the wallet gets the 30`, async () => expect(await inWallet(ends)).to.deep.equal(['30']));

    it('what was not paid lowers the invoice, and nothing reaches a wallet', async () => {
      expect(await inWallet('unpaid')).to.deep.equal([]);
      const [threshold] = await world.invoices('unpaid');
      expect([threshold!.total, threshold!.adjustment_amount, threshold!.amount_remaining]).to.deep.equal([
        '80',
        '30',
        '50',
      ]);
    });
  });

  it('after the scheduler was away: on the boundary itself', async () => {
    await overbilled(['away']);
    world.at('2026-02-03T00:00:00Z');
    await world.cancel('away', { cancellation_type: 'immediate', cancel_at: '2026-02-01T00:00:00Z' });
    await world.finalize();
    expect(await inWallet('away')).to.deep.equal(['30']);
  });

  it('comes off the next invoice of a threshold, and once', async () => {
    await overbilled(['next']);
    await world.on('2026-02-01');
    await world.use('next', 'calls', 6, { at: '2026-02-02T00:00:00Z' });
    await thresholdOn('2026-02-03T00:00:00Z');
    expect(await last('next')).to.equal(
      'THRESHOLD_BILLING FINALIZED 2026-02-01..2026-02-03 = 30\n' +
        '  calls 2026-02-01..2026-02-03: 6 = 60\n' +
        '  calls (invoiced before) 2026-01-01..2026-02-01: -3 = -30',
    );
    await world.on('2026-03-01');
    expect(await last('next')).to.equal(
      'SUBSCRIPTION_CYCLE SKIPPED 2026-02-01..2026-03-01 = 0\n  calls 2026-02-01..2026-03-01: 0 = 0',
    );
    await world.cancel('next');
    await world.finalize();
    await billLateUsage(world.api.services, new Date('2026-03-02T00:00:00Z'));
    expect(await inWallet('next')).to.deep.equal([]);
  });

  it('a late difference in favour of the customer is a line of the next invoice of a threshold', async () => {
    await world.subscribe('late', 'Use', { auto_invoice_threshold: '50' });
    await world.use('late', 'calls', 4, { at: '2026-01-02T00:00:00Z' });
    await world.on('2026-02-01');
    await world.finalize();
    await world.use('late', 'calls', -1, { at: '2026-01-03T00:00:00Z' });
    await world.use('late', 'calls', 6, { at: '2026-02-02T00:00:00Z' });
    await thresholdOn('2026-02-03T00:00:00Z');
    expect(await last('late')).to.equal(
      'THRESHOLD_BILLING FINALIZED 2026-02-01..2026-02-03 = 50\n' +
        '  calls 2026-02-01..2026-02-03: 6 = 60\n' +
        '  calls (late events) 2026-01-01..2026-02-01: -1 = -10',
    );
    await world.on('2026-03-01');
    expect(await last('late'))
      .to.contain('= 0\n')
      .and.not.to.contain('late events');
  });
});
