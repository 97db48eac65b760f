/**
 * What comes late for a subscription that has ended stands on an invoice of its own (docs/rules/invoices.md, "Late events"): by the
 * machine's clock, looked at by two schedulers at once, and by the clock of an environment.
 */
import { expect } from 'chai';
import { billLateUsage } from '../../actions/lifecycle/billing/bill-late-usage.ts';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { takeLateUsage } from '../../storage/progress/late-usage.ts';
import type { InvoiceLine } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { check, provenBy } from '../support/verifier.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const calls = usage('calls', '1', { display_name: 'calls' });
const CHEAPER: [number | null, string][] = [
  [100, '1'],
  [null, '0.4'],
];

async function catalogue(world: World): Promise<void> {
  await world.meter('calls');
  await world.plan('Calls', [calls]);
  await world.plan('Seat', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' }), calls]);
  await world.plan('Cheaper', [tiers('calls', CHEAPER, { display_name: 'calls', tier_mode: 'VOLUME' })]);
}

const late = (world: World, name: string, n: number, event_id?: string) =>
  world.send([world.event(name, 'calls', { n, at: '2026-01-10T00:00:00Z', ...(event_id ? { event_id } : {}) })]);

describe('scenario: late usage of a subscription that has ended', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await catalogue(world);
  });
  after(() => world.stop());

  /** Drafts that were made by two schedulers that look at once. */
  async function look(at: string): Promise<number> {
    world.at(at);
    await world.waitForPipeline();
    const both = await Promise.all([1, 2].map(() => billLateUsage(world.api.services, world.now)));
    for (const { failed } of both) if (failed.length > 0) throw failed[0]!.error;
    return both.reduce((sum, { drafted }) => sum + drafted, 0);
  }

  /** It has used so much, was cancelled on 20 January, and its last invoice is final or skipped. */
  async function ended(
    names: readonly string[],
    plan: string,
    n: number,
    terms: Record<string, object> = {},
  ): Promise<void> {
    world.at('2026-01-01');
    for (const name of names) await world.subscribe(name, plan, { start_date: '2026-01-01T00:00:00Z', ...terms[name] });
    world.at('2026-01-20');
    if (n > 0) for (const name of names) await late(world, name, n);
    await world.waitForPipeline();
    for (const name of names) await world.cancel(name);
    await world.finalize();
  }

  const told = async (name: string) => (await world.statements(name)).slice(1);
  const waiting = (name: string) =>
    world.api.services.postgres('late_usage').where({ subscription_id: world.id(`subscription ${name}`) });

  it('is on one invoice, whoever looks at it and however much comes', async () => {
    await ended(['leaver', 'silent'], 'Calls', 0);
    expect(await world.statements('silent')).to.deep.equal([
      'PRORATION SKIPPED 2026-01-01..2026-01-20 = 0\n  calls 2026-01-01..2026-01-20: 0 = 0',
    ]);
    world.at('2026-02-01');
    for (let sent = 0; sent < 2; sent++) {
      const events = Array.from({ length: 100 }, () =>
        world.event('leaver', 'calls', { n: 1, at: '2026-01-05T00:00:00Z' }),
      );
      await world.send(events);
      await world.waitForPipeline();
    }
    await late(world, 'silent', 5);
    expect(await look('2026-02-01T00:59:00Z'), 'within the hour').to.equal(0);
    expect(await look('2026-02-01T01:00:00Z')).to.equal(2);
    expect(await look('2026-02-01T02:00:00Z')).to.equal(0);
    const said = 'SUBSCRIPTION_CYCLE DRAFT 2026-01-20..2026-02-01T01:00';
    expect(await told('leaver')).to.deep.equal([
      `${said} = 200\n  calls (late events) 2026-01-01..2026-01-20: 200 = 200`,
    ]);
    expect(await told('silent')).to.deep.equal([`${said} = 5\n  calls (late events) 2026-01-01..2026-01-20: 5 = 5`]);
  });

  it('what comes while it is a draft is on it, what comes behind it on the next', async () => {
    await late(world, 'leaver', 7);
    await world.waitForPipeline();
    expect(await look('2026-02-01T04:00:00Z'), 'the draft takes it in by itself').to.equal(0);
    await world.finalize();
    expect((await told('leaver'))[0])
      .to.contain('FINALIZED')
      .and.to.contain('207 = 207');
    expect(await look('2026-02-01T05:00:00Z')).to.equal(0);
    expect(await waiting('leaver')).to.deep.equal([]);
    await late(world, 'leaver', 3);
    await world.waitForPipeline();
    expect(await look('2026-02-02')).to.equal(1);
    await world.finalize();
    expect((await told('leaver'))[1]).to.equal(
      'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01T01:00..2026-02-02 = 3\n  calls (late events) 2026-01-01..2026-01-20: 3 = 3',
    );
  });

  it('it is an invoice as others: due, printed, proven, voided and billed again', async () => {
    const [, first] = await world.invoices('leaver');
    expect([first!.due_date!.slice(0, 10), first!.invoice_number]).to.deep.equal(['2026-02-02', first!.invoice_number]);
    expect(first!.invoice_number).to.match(/^INV-202602-/);
    const pdf = await world.api.request('GET', `/invoices/${first!.id}/pdf`);
    expect(pdf.status, pdf.text.slice(0, 200)).to.equal(200);
    expect((await check(await provenBy(world.api, first!.id))).differences).to.deep.equal([]);
    const january = 'amounts=true&start_time=2026-01-01&end_time=2026-02-01';
    const { text } = await world.api.request('GET', `/events/usage/export?${january}`);
    const exported = csvRecords(text).filter(({ external_customer_id }) => external_customer_id === 'leaver');
    expect(sumDecimals(exported.map(({ amount }) => new Decimal(amount!))).toFixed()).to.equal('210');
    const last = (await world.invoices('leaver')).at(-1);
    const again = await world.post(`/invoices/${last!.id}/recalculate`, {});
    expect([again.invoice_status, again.total, again.line_items.length]).to.deep.equal(['DRAFT', '3', 1]);
    await world.finalize();
  });

  it('one who dies while looking leaves it to the next', async () => {
    await late(world, 'silent', 1);
    await world.waitForPipeline();
    const of = { ...world.api.scope, subscription_id: world.id('subscription silent') };
    expect(await takeLateUsage(world.api.services.postgres, of)).to.have.length(1);
    expect(await look('2026-02-03')).to.equal(1);
    expect(await waiting('silent')).to.deep.equal([]);
    expect((await told('silent')).at(-1)).to.contain('calls (late events) 2026-01-01..2026-01-20: 1 = 1');
  });

  it('what comes while somebody looks is looked at again', async () => {
    await ended(['watched'], 'Calls', 1);
    world.at('2026-02-01');
    await late(world, 'watched', 1);
    await world.waitForPipeline();
    const of = { ...world.api.scope, subscription_id: world.id('subscription watched') };
    await takeLateUsage(world.api.services.postgres, of);
    await late(world, 'watched', 1);
    await world.waitForPipeline();
    expect((await waiting('watched')).map(({ is_taken }) => is_taken).sort()).to.deep.equal([false, true]);
    expect(await look('2026-02-01T03:00:00Z')).to.equal(1);
    expect((await told('watched'))[0]).to.contain('2 = 2');
  });

  it('a commitment that was trued up is drawn from, and what is above costs its factor', async () => {
    const committed = { commitment_amount: '100', overage_factor: '2', enable_true_up: true };
    await ended(['committed'], 'Calls', 40, { committed });
    // 19 of 31 days.
    expect((await world.invoices('committed')).map(({ total }) => total)).to.deep.equal(['61.29']);
    world.at('2026-02-01');
    await late(world, 'committed', 10);
    expect(await look('2026-02-01T01:00:00Z'), 'within what was lacking').to.equal(0);
    expect(await told('committed')).to.deep.equal([]);
    await late(world, 'committed', 20);
    expect(await look('2026-02-01T03:00:00Z')).to.equal(1);
    // 70 in all, 8.71 above 61.29.
    expect((await told('committed'))[0]).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-20..2026-02-01T03:00 = 17.42\n  calls (late events) 2026-01-01..2026-01-20: 30 = 17.42',
    );
  });

  it('what is taken back leaves what was committed to', async () => {
    world.at('2026-01-01');
    const committed = { commitment_amount: '100', overage_factor: '2', enable_true_up: true };
    await world.subscribe('above', 'Calls', { start_date: '2026-01-01T00:00:00Z', ...committed });
    world.at('2026-01-20');
    await late(world, 'above', 100, 'too many');
    await world.waitForPipeline();
    await world.cancel('above');
    await world.finalize();
    // 61.29 for 19 of 31 days, and 38.71 above, twice.
    expect((await world.invoices('above')).map(({ total }) => total)).to.deep.equal(['138.71']);
    await world.replace('too many', world.event('above', 'calls', { n: 10, at: '2026-01-10T00:00:00Z' }));
    expect(await look('2026-01-20T01:00:00Z')).to.equal(1);
    expect((await told('above'))[0]).to.contain('calls (late events) 2026-01-01..2026-01-20: -90 = -77.42');
    await world.finalize();
  });

  it('what is taken back goes into the wallet, also what a threshold had invoiced', async () => {
    world.at('2026-01-01');
    await world.subscribe('reached', 'Cheaper', { start_date: '2026-01-01T00:00:00Z', auto_invoice_threshold: '60' });
    world.at('2026-01-11');
    await late(world, 'reached', 60, 'a mistake');
    await late(world, 'reached', 20);
    await world.waitForPipeline();
    expect((await billThresholds(world.api.services, world.now)).invoiced).to.equal(1);
    world.at('2026-01-20');
    await world.pay('reached');
    await world.cancel('reached');
    await world.finalize();
    await world.replace('a mistake', world.event('reached', 'calls', { n: 10, at: '2026-01-10T00:00:00Z' }));
    expect(await look('2026-01-20T01:00:00Z')).to.equal(1);
    await world.finalize();
    expect((await world.statements('reached')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE FINALIZED 2026-01-20..2026-01-20T01:00 = 0\n  calls (late events) 2026-01-01..2026-01-20: -50 = -50',
    );
    const wallets = await world.get(`/customers/${world.id('customer reached')}/wallets`);
    expect(wallets.map(({ balance }) => balance)).to.deep.equal(['50']);
  });

  it('what was forgiven stays forgiven, and what lies behind the end is nobody’s', async () => {
    world.at('2026-01-01');
    for (const name of ['forgiven', 'behind'])
      await world.subscribe(name, 'Calls', { start_date: '2026-01-01T00:00:00Z' });
    world.at('2026-01-20');
    await world.cancel('forgiven', { cancellation_type: 'immediate', cancel_immediately_invoice_policy: 'skip' });
    await world.cancel('behind');
    await world.finalize();
    world.at('2026-02-01');
    await late(world, 'forgiven', 9);
    await world.use('behind', 'calls', 9);
    await world.waitForPipeline();
    expect(await waiting('behind'), 'nobody looks').to.deep.equal([]);
    expect(await look('2026-02-01T02:00:00Z')).to.equal(0);
  });

  it('a fixed coupon came off the period itself, a percentage comes off what is late, too', async () => {
    const coupon = { cadence: 'forever', currency: 'usd' };
    await world.post('/coupons', { ...coupon, name: 'ten', coupon_code: 'TEN', type: 'fixed', amount_off: '10' });
    await world.post('/coupons', {
      ...coupon,
      name: 'half',
      coupon_code: 'HALF',
      type: 'percentage',
      percentage_off: '50',
    });
    await ended(['fixed', 'half'], 'Calls', 30, { fixed: { coupons: ['TEN'] }, half: { coupons: ['HALF'] } });
    world.at('2026-02-01');
    for (const name of ['fixed', 'half']) await late(world, name, 30);
    expect(await look('2026-02-01T01:00:00Z')).to.equal(2);
    const [, draft] = await world.invoices('fixed');
    const stated = ['subscription_line_item_id', 'period_start', 'period_end', 'amount', 'quantity', 'display_name'];
    const line = Object.fromEntries(stated.map((field) => [field, draft!.line_items[0]![field as keyof InvoiceLine]]));
    const body = { line_items: [{ ...line, display_name: 'what came late' }] };
    const edited = await world.api.request('POST', `/invoices/${draft!.id}/compute`, { body });
    expect(edited.status, edited.text).to.equal(202);
    await world.finalize();
    const totals = async (name: string) => (await world.invoices(name)).map(({ total }) => total);
    expect(await totals('fixed')).to.deep.equal(['20', '30']);
    expect(await totals('half')).to.deep.equal(['15', '15']);
  });

  it('of a draft that somebody makes final by hand, before all was counted', async () => {
    world.at('2026-01-01');
    await world.subscribe('hasty', 'Calls', { start_date: '2026-01-01T00:00:00Z' });
    world.at('2026-01-20');
    await late(world, 'hasty', 2);
    await world.waitForPipeline();
    await world.cancel('hasty');
    const { id } = (await world.invoices('hasty'))[0]!;
    await world.api.services.postgres('late_usage').delete();
    await world.post(`/invoices/${id}/finalize`, {});
    expect(await waiting('hasty')).to.have.length(1);
    expect(await look('2026-01-20T01:00:00Z'), 'all was').to.equal(0);
    expect(await waiting('hasty')).to.deep.equal([]);
  });

  describe('of a family', () => {
    it('what an heir has used stands on an invoice of the parent', async () => {
      world.at('2026-01-01');
      await world.customer('heir');
      const inheritance = { external_customer_ids_to_inherit_subscription: ['heir'] };
      await world.subscribe('parent', 'Calls', { start_date: '2026-01-01T00:00:00Z', inheritance });
      world.at('2026-01-20');
      await world.cancel('parent');
      await world.finalize();
      await late(world, 'heir', 4);
      expect(await look('2026-01-20T01:00:00Z')).to.equal(1);
      expect(await told('parent')).to.deep.equal([
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-20..2026-01-20T01:00 = 4\n  calls (late events) 2026-01-01..2026-01-20: 4 = 4',
      ]);
    });

    it('of one that was invoiced with a parent: on the parent’s, as long as one comes, then by itself for the same payer', async () => {
      world.at('2026-01-01');
      const child = await world.subscribe('child', 'Calls', { start_date: '2026-01-01T00:00:00Z' });
      const inheritance = { subscriptions_ids_for_grouped_invoicing: [child.id] };
      await world.subscribe('head', 'Calls', { start_date: '2026-01-01T00:00:00Z', inheritance });
      await late(world, 'child', 1);
      world.at('2026-01-20');
      await world.waitForPipeline();
      await world.cancel('child');
      await late(world, 'child', 2);
      expect(await look('2026-01-21'), 'the parent has it on its next').to.equal(0);
      await world.on('2026-02-01');
      await world.finalize();
      const head = (await world.statements('head')).at(-1);
      expect(head).to.contain('calls 2026-01-01..2026-01-20: 3 = 3');
      await late(world, 'child', 4);
      expect(await look('2026-02-01T02:00:00Z')).to.equal(1);
      await world.finalize();
      const [own] = await world.invoices('child');
      expect([own!.total, own!.customer_id]).to.deep.equal(['4', world.id('customer head')]);
      await world.on('2026-03-01');
      expect((await world.statements('head')).at(-1), 'and not once more').not.to.contain('late');
    });
  });
});

describe('scenario: late usage of what has ended, by the clock of an environment', () => {
  it('is invoiced an hour behind its arrival', async () => {
    const world = await startWorld({ test_clock: true });
    try {
      await catalogue(world);
      await world.subscribe('leaver', 'Seat');
      await world.on('2026-01-20', () => world.cancel('leaver'));
      await world.on('2026-02-01', () => late(world, 'leaver', 5));
      const { progress } = await world.advance('2026-02-02');
      expect(progress.done).to.include({ drafted: 1, looked: 1, finalized: 1 });
      const [, , own] = await world.invoices('leaver');
      expect([own!.total, own!.created_at.slice(0, 16), own!.finalized_at!.slice(0, 16)]).to.deep.equal([
        '5',
        '2026-02-01T01:00',
        '2026-02-01T03:00',
      ]);
      const again = await world.advance('2026-03-01');
      expect(again.progress.done).not.to.have.property('drafted');
    } finally {
      await world.stop();
    }
  });
});
