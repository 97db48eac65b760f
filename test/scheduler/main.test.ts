import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('the scheduler', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE', display_name: 'base' })]);
    await world.plan('Calls', [usage('calls', '1')]);
  });
  after(() => world.stop());

  it('does what is due at the instant that it is given: bills first, finalizes after the delay', async () => {
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    const scheduler = startScheduler(world.api.services, { clock: () => world.now });
    try {
      const early = await scheduler.runOnce(new Date('2026-01-31T23:59:59Z'));
      expect(early['bill-due-periods']?.done).to.deep.equal({ billed: 0 });
      const billed = await scheduler.runOnce(new Date('2026-02-01T00:00:00Z'));
      expect(billed['bill-due-periods']?.done).to.deep.equal({ billed: 1 });
      expect(billed['finalize-due-invoices']?.done).to.deep.equal({ finalized: 0, skipped: 0 });
      const final = await scheduler.runOnce(new Date('2026-02-01T02:00:00Z'));
      expect(final['finalize-due-invoices']?.done).to.deep.equal({ finalized: 1, skipped: 0 });
    } finally {
      await scheduler.stop();
    }
    expect((await world.invoices('acme')).map(({ invoice_number }) => invoice_number)).to.deep.equal([
      'INV-202601-00001',
      'INV-202602-00001',
    ]);
  });

  it('waits for usage that was sent before the end of the period and is still on its way', async () => {
    await world.on('2026-01-01', () => world.subscribe('late', 'Calls'));
    await world.waitForPipeline();
    await world.pausePipeline();
    world.at('2026-01-31T23:59:00Z');
    await world.use('late', 'calls', 5);
    world.at('2026-02-01');
    const scheduler = startScheduler(world.api.services, { clock: () => world.now });
    const waiting = await scheduler.runOnce(world.now);
    await scheduler.stop();
    expect(waiting['bill-due-periods']?.waiting).to.deep.equal([world.id('subscription late')]);
    expect(await world.statements('late')).to.deep.equal([]);

    await world.resumePipeline();
    await world.bill();
    expect((await world.statements('late'))[0]).to.contain('= 5');
  });

  it('ends a trial: a paid invoice of nothing at its start, the first charge at its end, anchored there', async () => {
    const terms = { trial_start: '2026-01-10T00:00:00Z', trial_end: '2026-01-31T00:00:00Z' };
    await world.on('2026-01-10', () => world.subscribe('trial', 'Pro', terms));
    await world.on('2026-01-31');
    await world.on('2026-02-28');
    expect(await world.statements('trial')).to.deep.equal([
      'SUBSCRIPTION_TRIAL_START FINALIZED 2026-01-10..2026-01-31 = 0',
      'SUBSCRIPTION_TRIAL_END FINALIZED 2026-01-31..2026-02-28 = 10\n  base 2026-01-31..2026-02-28: 1 = 10',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-31..2026-02-28 = 10\n  base 2026-02-28..2026-03-31: 1 = 10',
    ]);
    const [start] = await world.invoices('trial');
    expect(start!.payment_status).to.equal('SUCCEEDED');
  });
});
