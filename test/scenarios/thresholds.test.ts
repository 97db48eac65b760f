/** Usage that is invoiced before its period is over (docs/rules/invoices.md, "Before the period is over"). */
import { expect } from 'chai';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { createWork } from '../../scheduler/main.ts';
import { THRESHOLD_TASK } from '../../storage/progress/threshold-arrivals.ts';
import { csvRecords } from '../support/csv-records.ts';
import { expectExport } from '../support/exported.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

describe('scenario: thresholds', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('storage');
    const slabs: [number | null, string][] = [
      [100, '1'],
      [null, '0.5'],
    ];
    await world.plan('Tiers', [tiers('calls', slabs, { display_name: 'calls' })]);
    const storage = usage('storage', '1', { display_name: 'storage' });
    await world.plan('Two', [usage('calls', '1', { display_name: 'calls' }), storage]);
    await world.on('2026-01-01');
    await world.subscribe('tiers', 'Tiers', { auto_invoice_threshold: '50' });
    await world.subscribe('committed', 'Two', {
      auto_invoice_threshold: '60',
      commitment_amount: '100',
      overage_factor: '2',
      enable_true_up: true,
    });
    await world.subscribe('later', 'Tiers');
  });
  after(() => world.stop());

  /** What the job does, twice at once, as two schedulers do. */
  async function look(date: string): Promise<number> {
    world.at(date);
    await world.waitForPipeline();
    const both = await Promise.all([1, 2].map(() => billThresholds(world.api.services, world.now)));
    for (const { failed } of both) if (failed.length > 0) throw failed[0]!.error;
    return both.reduce((sum, { invoiced }) => sum + invoiced, 0);
  }

  const JANUARY = 'start_time=2026-01-01&end_time=2026-02-01';

  it('is not reached by nothing, nor by less', async () => {
    expect(await look('2026-01-02')).to.equal(0);
    await world.use('tiers', 'calls', 49);
    await world.use('committed', 'calls', 59);
    expect(await look('2026-01-03')).to.equal(0);
  });

  it('is invoiced once when it is reached, and the period stays', async () => {
    await world.use('tiers', 'calls', 51);
    await world.use('committed', 'calls', 21);
    expect(await look('2026-01-05')).to.equal(2);
    expect(await look('2026-01-06')).to.equal(0);
    expect((await world.subscription('tiers')).current_period_start).to.equal('2026-01-01T00:00:00Z');
    expect(await world.statements('tiers')).to.deep.equal([
      'THRESHOLD_BILLING FINALIZED 2026-01-01..2026-01-05 = 100\n  calls 2026-01-01..2026-01-05: 100 = 100',
    ]);
  });

  it('the next is the difference: tiers and commitments go on', async () => {
    await world.use('tiers', 'calls', 100);
    await world.use('committed', 'storage', 50);
    expect(await look('2026-01-10')).to.equal(2);
    expect((await world.statements('tiers')).at(-1)).to.equal(
      'THRESHOLD_BILLING FINALIZED 2026-01-01..2026-01-10 = 50\n  calls 2026-01-01..2026-01-10: 100 = 50',
    );
    expect((await world.statements('committed')).at(-1)).to.equal(
      'THRESHOLD_BILLING FINALIZED 2026-01-01..2026-01-10 = 80\n' +
        '  storage 2026-01-01..2026-01-10: 50 = 20\n' +
        '  storage (overage) 2026-01-01..2026-01-10: 0 = 60',
    );
  });

  it('the export with amounts says each invoice, and what the preview adds', async () => {
    await world.use('tiers', 'calls', 10);
    await world.waitForPipeline();
    await expectExport(world, 'tiers', JANUARY);
    await expectExport(world, 'committed', JANUARY);
    const days = await world.api.request('GET', `/events/usage/export?amounts=true&${JANUARY}&split=day`);
    const rows = csvRecords(days.text).filter((row) => row.external_customer_id === 'tiers');
    expect(
      rows.map((row) => `${row.start_time!.slice(8, 10)}: ${row.usage} = ${row.amount} ${row.invoice_status}`),
    ).to.deep.equal(['02: 49 = 49 FINALIZED', '03: 51 = 51 FINALIZED', '06: 100 = 50 FINALIZED', '10: 10 = 5 ']);
  });

  it('the end of the period charges what is left, once', async () => {
    const expected = (await world.preview('tiers')).total;
    await world.on('2026-02-01');
    const [tiersDraft, committedDraft] = await Promise.all(
      ['tiers', 'committed'].map(async (name) => (await world.statements(name)).at(-1)),
    );
    expect(tiersDraft).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 5\n  calls 2026-01-01..2026-02-01: 10 = 5',
    );
    expect(expected).to.equal('5');
    expect(committedDraft).to.contain('SKIPPED').and.to.contain('= 0');
    await world.finalize();
    await expectExport(world, 'tiers', JANUARY);
    await expectExport(world, 'committed', JANUARY);
    const all = (await world.invoices('tiers')).map(({ total }) => Number(total));
    expect(all.reduce((sum, total) => sum + total)).to.equal(155); // 100 + 110 × 0.5
  });

  it('what comes late for the period is counted against all that was invoiced of it', async () => {
    await world.send([
      world.event('tiers', 'calls', { n: 4, at: '2026-01-20T00:00:00Z' }),
      world.event('committed', 'calls', { n: 4, at: '2026-01-20T00:00:00Z' }),
    ]);
    await world.on('2026-03-01');
    const late = async (name: string) =>
      (await world.invoices(name)).at(-1)!.line_items.filter((line) => line.display_name!.includes('late'));
    expect((await late('tiers')).map(({ amount }) => amount)).to.deep.equal(['2']);
    expect((await late('committed')).map(({ amount }) => amount)).to.deep.equal(['8']);
  });

  it('is looked at when usage arrives: once for all that arrives until then', async () => {
    world.at('2026-03-02');
    const { postgres, clock } = world.api.services;
    const key = `threshold:${world.id('subscription tiers')}`;
    const waiting = () => postgres.withSchema('graphile_worker').from('jobs').select('run_at').where({ key });
    await postgres.raw('select graphile_worker.remove_job(?)', [key]);
    await world.use('later', 'calls', 1);
    await world.waitForPipeline();
    expect(await waiting(), 'another customer').to.deep.equal([]);
    await world.use('tiers', 'calls', 200);
    await until('it is to be looked at', async () => (await waiting()).length > 0);
    const [first] = await waiting();
    await world.use('tiers', 'calls', 1);
    await world.waitForPipeline();
    expect(await waiting(), 'what comes on does not put it off').to.deep.equal([first]);
    const work = createWork(world.api.services, clock).find(({ name }) => name === THRESHOLD_TASK)!;
    const payload = { ...world.api.scope, subscription_id: world.id('subscription tiers') };
    world.at('2026-03-03');
    const before = (await world.invoices('tiers')).length;
    await Promise.all(
      [1, 2].map((attempt) =>
        work.run(payload, { attempt, is_last: false, signal: AbortSignal.timeout(60_000), mayGoOn: async () => true }),
      ),
    );
    expect((await world.invoices('tiers')).slice(before)).to.have.length(1);
  });

  it('may be set, changed and taken away later', async () => {
    const path = `/subscriptions/${world.id('subscription later')}` as const;
    const put = (body: object) => world.api.request('PUT', path, { body });
    expect((await put({ auto_invoice_threshold: '5' })).body.auto_invoice_threshold).to.equal('5');
    await world.use('later', 'calls', 6);
    expect(await look('2026-03-05')).to.equal(1);
    expect((await put({ metadata: { a: 'b' } })).body.auto_invoice_threshold).to.equal('5');
    expect((await put({ auto_invoice_threshold: '0' })).body.auto_invoice_threshold).to.equal(null);
    const refused = await put({ auto_invoice_threshold: '-1' });
    expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'auto_invoice_threshold']);
  });

  it('is of a standalone subscription with usage prices only, by whatever door', async () => {
    await world.plan('Fee', [fixed('31', { invoice_cadence: 'ADVANCE' })]);
    const price = { ...fixed('62'), billing_period: 'MONTHLY', price_unit_type: 'FIAT' };
    const addon = await world.post('/addons', { name: 'Fee', lookup_key: 'fee', type: 'onetime' });
    await world.post('/prices', { ...price, currency: 'usd', entity_type: 'ADDON', entity_id: addon.id });
    await world.customer('mixed');
    const fresh = await world.subscribe('alone', 'Two', { auto_invoice_threshold: '10' });
    const child = await world.subscribe('a child', 'Two');
    const started = {
      external_customer_id: 'mixed',
      plan_id: world.id('plan Two'),
      currency: 'usd',
      billing_period: 'MONTHLY',
      auto_invoice_threshold: '10',
    };
    const target = { target_plan_id: world.id('plan Fee'), proration_behavior: 'none' };
    const grouped = { action: 'add', child_subscription_ids: [child.id] };
    const doors: [string, object][] = [
      ['/subscriptions', { ...started, line_items: [{ price }] }],
      ['/subscriptions', { ...started, addons: [{ addon_id: addon.id }] }],
      [`/subscriptions/${fresh.id}/lineitems`, { price }],
      ['/subscriptions/addon', { subscription_id: fresh.id, addon_id: addon.id }],
      [`/subscriptions/${fresh.id}/change/v2/execute`, target],
      [`/subscriptions/${fresh.id}/modify/execute`, { type: 'grouped_invoicing', grouped_invoicing_params: grouped }],
    ];
    for (const [path, body] of doors) {
      const { status, text, body: answer } = await world.api.request('POST', path, { body });
      expect([status, answer.details?.field], `${path} ${text}`).to.deep.equal([400, 'auto_invoice_threshold']);
    }
  });
});
