/**
 * What was invoiced too much before a period was over (docs/rules/invoices.md, "Before the period is over"): a tier that prices
 * all of the usage gets cheaper with more of it, and events are taken back. What is invoiced in all is what the usage costs.
 */
import { expect } from 'chai';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice } from '../support/answers.ts';
import { expectExport } from '../support/exported.ts';
import { startWorld, tiers, usage, type World } from '../support/world.ts';

describe('scenario: more was invoiced before the period was over than it costs', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('storage');
    const cheaper = tiers(
      'calls',
      [
        [100, '1'],
        [null, '0.4'],
      ],
      { display_name: 'calls', tier_mode: 'VOLUME' },
    );
    await world.plan('One', [cheaper]);
    await world.plan('Two', [cheaper, usage('storage', '1', { display_name: 'storage' })]);
    await world.on('2026-01-01');
    for (const [name, plan] of [
      ['alone', 'One'],
      ['two', 'Two'],
      ['again', 'Two'],
      ['leaver', 'One'],
      ['voided', 'One'],
    ] as const) {
      await world.subscribe(name, plan, { auto_invoice_threshold: '100' });
      await world.use(name, 'calls', 100);
    }
    world.at('2026-01-05');
    await world.waitForPipeline();
    const { invoiced, failed } = await billThresholds(world.api.services, world.now);
    expect([invoiced, failed]).to.deep.equal([5, []]);
    await world.pay('leaver');
  });
  after(() => world.stop());

  const invoicedInAll = async (name: string) =>
    sumDecimals((await world.invoices(name)).map(({ total }) => new Decimal(total))).toFixed();

  it('is taken off what is reached next', async () => {
    await world.send([world.event('again', 'calls', { n: 100 }), world.event('again', 'storage', { n: 110 })]);
    await world.waitForPipeline();
    world.at('2026-01-06');
    // 80 + 110 less 100 is below the threshold.
    expect((await billThresholds(world.api.services, world.now)).invoiced).to.equal(0);
    await world.use('again', 'storage', 10);
    await world.waitForPipeline();
    world.at('2026-01-07');
    expect((await billThresholds(world.api.services, world.now)).invoiced).to.equal(1);
    expect((await world.statements('again')).at(-1)).to.equal(
      'THRESHOLD_BILLING FINALIZED 2026-01-01..2026-01-07 = 100\n' +
        '  storage 2026-01-01..2026-01-07: 120 = 120\n' +
        '  calls (invoiced before) 2026-01-01..2026-01-07: 0 = -20',
    );
  });

  it('comes off the invoice of the period, and the rest off the next one', async () => {
    for (const name of ['alone', 'two', 'leaver', 'voided']) await world.use(name, 'calls', 100);
    await world.use('two', 'storage', 15);
    await world.cancel('leaver', { cancellation_type: 'end_of_period' });
    await world.waitForPipeline();
    const preview = await world.preview('two');
    const january = 'start_time=2026-01-01&end_time=2026-02-01';
    for (const name of ['two', 'again']) await expectExport(world, name, january);
    await world.on('2026-02-01');
    for (const name of ['two', 'again']) await expectExport(world, name, january);
    const said =
      'SUBSCRIPTION_CYCLE SKIPPED 2026-01-01..2026-02-01 = 0\n' +
      '  calls 2026-01-01..2026-02-01: 100 = 0\n' +
      '  storage 2026-01-01..2026-02-01: 15 = 15\n' +
      '  calls (invoiced before) 2026-01-01..2026-02-01: 0 = -15';
    expect((await world.statements('two')).at(-1)).to.equal(said);
    expect(preview.total).to.equal('0');
    const carried = (await world.invoices('two')).at(-1)!.line_items.at(-1);
    expect(carried!.computed_from!.carried_amount).to.equal('5');
    expect((await world.statements('again')).at(-1)).to.contain('SKIPPED');
    for (const name of ['alone', 'two', 'again']) await world.use(name, 'calls', 50);
    await world.on('2026-03-01');
    expect((await world.statements('two')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 45\n' +
        '  calls 2026-02-01..2026-03-01: 50 = 50\n' +
        '  storage 2026-02-01..2026-03-01: 0 = 0\n' +
        '  calls (invoiced before) 2026-01-01..2026-02-01: 0 = -5',
    );
    await world.on('2026-04-01');
    expect(await invoicedInAll('alone'), '80 + 50').to.equal('130');
    expect(await invoicedInAll('two'), '80 + 15 + 50').to.equal('145');
    expect(await invoicedInAll('again'), '80 + 120 + 50').to.equal('250');
  });

  it('goes to the wallet with the last invoice, once that is final', async () => {
    expect((await world.statements('leaver')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 0\n' +
        '  calls 2026-01-01..2026-02-01: 100 = 0\n' +
        '  calls (invoiced before) 2026-01-01..2026-02-01: 0 = -20',
    );
    const balance = async () => {
      const { customer_id } = await world.subscription('leaver');
      const wallets = await world.get(`/customers/${customer_id}/wallets`);
      return wallets.map((wallet) => wallet.balance);
    };
    expect(await balance()).to.deep.equal([]);
    await world.finalize();
    expect(await balance()).to.deep.equal(['20']);
    const last = (await world.invoices('leaver')).at(-1);
    expect(last).to.include({ invoice_status: 'FINALIZED', payment_status: 'SUCCEEDED', amount_due: '0' });
    const refused = await world.api.request('POST', `/invoices/${last!.id}/void`, { body: {} });
    expect(refused.status, 'its credit is in the wallet').to.equal(400);
  });

  it('is not forgotten where the invoice that set it off is computed anew', async () => {
    const [, skipped] = await world.invoices('two');
    const before = await world.statements('two');
    // The invoice of February is final, and says the rest of it.
    for (const _again of [1, 2]) await world.post(`/invoices/${skipped!.id}/compute?sync=true`, {});
    const after = await world.statements('two');
    expect(after[1]).to.equal(before[1]);
    expect(await invoicedInAll('two'), '80 + 15 + 50').to.equal('145');
  });

  it('an invoice of before cannot be voided behind the one of its period; that one can', async () => {
    const [before, cycle] = await world.invoices('voided');
    const voidOf = (invoice: Invoice) => world.api.request('POST', `/invoices/${invoice.id}/void`, { body: {} });
    const refused = await voidOf(before!);
    expect([refused.status, refused.body.details!.invoice_id]).to.deep.equal([400, cycle!.id]);
    expect((await voidOf(cycle!)).status).to.equal(200);
    expect((await voidOf(before!)).status).to.equal(200);
  });

  it('a draft of the period says all that it costs as soon as the one before is void', async () => {
    await world.use('voided', 'calls', 250);
    await world.waitForPipeline();
    world.at('2026-04-05');
    expect((await billThresholds(world.api.services, world.now)).invoiced).to.equal(1);
    await world.use('voided', 'calls', 10);
    await world.on('2026-05-01');
    const [before, draft] = (await world.invoices('voided')).slice(-2);
    expect([before!.total, draft!.total]).to.deep.equal(['100', '4']);
    await world.post(`/invoices/${before!.id}/void`, {});
    expect((await world.invoices('voided')).at(-1)).to.include({ total: '104', invoice_status: 'DRAFT' });
  });

  it('what came late and stands on a later invoice is not charged again where its period is billed again', async () => {
    await world.subscribe('late', 'Two', { start_date: '2026-05-01T00:00:00Z' });
    const used = (n: number) => world.send([world.event('late', 'storage', { n, at: '2026-05-10T00:00:00Z' })]);
    const billed = async (now: string) => {
      await world.on(now);
      await world.finalize();
    };
    await used(10);
    await billed('2026-06-01');
    await used(3);
    await billed('2026-06-02');
    await billed('2026-07-01');
    const [may] = await world.invoices('late');
    expect(await invoicedInAll('late')).to.equal('13');
    await world.post(`/invoices/${may!.id}/void`, {});
    const again = await world.post(`/invoices/${may!.id}/recalculate`, {});
    expect(again.total, 'the three are on the invoice of June').to.equal('10');
  });
});
