/** The audit of usage that is on no invoice names what was left out, and is silent where nothing is to be invoiced (docs/operations.md, "What the audit finds"). */
import { expect } from 'chai';
import { endUnpaid } from '../../../../actions/lifecycle/subscriptions/end-unpaid.ts';
import { auditRecords } from '../../../../actions/operations/audit/records.ts';
import { auditSampleJob } from '../../../../scheduler/jobs/audit-sample.ts';
import { fixed, startWorld, usage, type World } from '../../../support/world.ts';

const SEE = 'run npm run audit, and see docs/operations.md, "What the audit finds"';

describe('audit of usage that is on no invoice', () => {
  let world: World;
  /** Takes back what was damaged. */
  const mended: string[] = [];

  beforeEach(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Plain', [usage('calls', '1')]);
  });
  afterEach(async () => {
    // What stands in the rows is asked for at the end, too.
    for (const statement of mended.splice(0)) await raw(statement);
    await world.stop();
  });

  const raw = (statement: string) => world.api.services.postgres.raw(statement);
  /** What `npm run audit -- --check uninvoiced` does. */
  async function audited(): Promise<{ told: string[]; differences: number }> {
    const told: string[] = [];
    const asked = {
      checks: new Set(['uninvoiced'] as const),
      log: null,
      identityFiles: async () => [],
      chance: () => 0,
    };
    const { postgres, clickhouse } = world.api.services;
    const [report] = await auditRecords({ postgres, clickhouse }, asked, ({ kind, what }) =>
      told.push(`${kind} ${what}`),
    );
    return { told: told.sort(), differences: report!.differences };
  }
  /** What the job of the scheduler tells its log; that lines are gone is told of their invoices, too. */
  async function sampled(): Promise<string[]> {
    const { failed } = await auditSampleJob(world.api.services, 300).run(world.now);
    return failed.map(({ error }) => (error as Error).message).filter((text) => text.startsWith('usage_uninvoiced'));
  }
  const used = (customer: string, n: number, at: string) => world.use(customer, 'calls', n, { at: `${at}T00:00:00Z` });
  const lineOf = async (customer: string): Promise<string> => (await world.subscription(customer)).line_items[0]!.id;
  const left = async (customer: string, what: string) =>
    `${world.id(`subscription ${customer}`)}, line ${await lineOf(customer)}: ${what} are on no invoice`;
  async function takeAway(customer: string): Promise<void> {
    const line = await lineOf(customer);
    await raw(`create table taken as select * from invoice_line_items where subscription_line_item_id = '${line}'`);
    await raw(`delete from invoice_line_items where subscription_line_item_id = '${line}'`);
    mended.push('insert into invoice_line_items select * from taken', 'drop table taken');
  }

  it('names a period of which the line is gone, and the one at the end', async () => {
    await world.subscribe('acme', 'Plain');
    await used('acme', 7, '2026-03-05');
    await used('acme', 5, '2026-04-05');
    await world.on('2026-04-10', () => world.cancel('acme'));
    await world.bill();
    expect(await audited()).to.deep.equal({ told: [], differences: 0 });
    await takeAway('acme');
    const what = await left(
      'acme',
      '2 events that come to 12 from 2026-03-01T00:00:00.000Z to 2026-04-10T00:00:00.000Z',
    );
    expect(await audited()).to.deep.equal({ told: [`usage_uninvoiced ${what}`], differences: 1 });
    expect(await sampled()).to.deep.equal([`usage_uninvoiced: 2: ${what}; ${SEE}`]);
  });

  it('names a child of a group that ended inside a period of its parent, whose usage no invoice has', async () => {
    await world.subscribe('parent', 'Plain');
    await world.subscribe('child', 'Plain', { end_date: '2026-04-20T00:00:00Z' });
    await world.group('parent', 'child');
    await world.on('2026-04-01');
    await used('child', 100, '2026-04-05');
    await world.on('2026-04-25');
    expect(await audited(), 'it waits for the invoice of its parent').to.deep.equal({ told: [], differences: 0 });
    await world.on('2026-05-02');
    expect(await audited()).to.deep.equal({ told: [], differences: 0 });
    await takeAway('child');
    const what = await left(
      'child',
      '1 events that come to 100 from 2026-03-01T00:00:00.000Z to 2026-04-20T00:00:00.000Z',
    );
    expect(await audited()).to.deep.equal({ told: [`usage_uninvoiced ${what}`], differences: 1 });
    expect(await sampled()).to.deep.equal([`usage_uninvoiced: 1: ${what}; ${SEE}`]);
  });

  it('is silent where nobody used anything', async () => {
    await world.subscribe('acme', 'Plain');
    await world.on('2026-04-10');
    await used('acme', 5, '2026-04-05');
    await world.waitForPipeline();
    await takeAway('acme');
    expect(await audited()).to.deep.equal({ told: [], differences: 0 });
  });

  it('and where it is forgiven, in a trial, void, or was never paid', async () => {
    await world.plan('Paid', [usage('calls', '1'), fixed('10', { invoice_cadence: 'ADVANCE' })]);
    await world.subscribe('forgiven', 'Plain');
    await world.subscribe('tries', 'Plain', { trial_period_days: 14 });
    await world.subscribe('void', 'Plain');
    const waits = { payment_behavior: 'default_incomplete', collection_method: 'send_invoice' };
    await world.subscribe('unpaid', 'Paid', { ...waits, end_date: '2026-03-20T00:00:00Z' });
    for (const customer of ['forgiven', 'tries', 'void', 'unpaid']) await used(customer, 5, '2026-03-05');
    const forgiving = { cancellation_type: 'immediate', cancel_immediately_invoice_policy: 'skip' };
    await world.on('2026-03-10', () => world.cancel('forgiven', forgiving));
    await world.on('2026-04-20', () => world.finalize());
    await endUnpaid(world.api.services, { now: world.now });
    const [invoice] = await world.invoices('void');
    await world.post(`/invoices/${invoice!.id}/void`, {});
    const states = await Promise.all(['forgiven', 'tries', 'void', 'unpaid'].map((one) => world.subscription(one)));
    expect(states.map(({ subscription_status }) => subscription_status)).to.deep.equal([
      'cancelled',
      'active',
      'active',
      'cancelled',
    ]);
    expect(await audited()).to.deep.equal({ told: [], differences: 0 });
  });

  for (const charged of ['7', '0'])
    it(`says so until an invoice written by hand has it, of ${charged}`, async () => {
      await world.subscribe('acme', 'Plain');
      await used('acme', 7, '2026-03-05');
      await world.on('2026-04-10');
      const line = await lineOf('acme');
      await takeAway('acme');
      expect((await audited()).differences).to.equal(1);
      const { customer_id } = await world.subscription('acme');
      const period = { period_start: '2026-03-01T00:00:00Z', period_end: '2026-04-01T00:00:00Z' };
      const own = { display_name: 'calls', subscription_line_item_id: line, ...period };
      const sums = { subtotal: charged, total: charged, amount_due: charged };
      const invoice = { invoice_type: 'ONE_OFF', customer_id, currency: 'usd', ...sums };
      await world.post('/invoices', { ...invoice, line_items: [{ ...own, amount: charged, quantity: '7' }] });
      expect(await audited()).to.deep.equal({ told: [], differences: 0 });
    });
}).timeout(120_000);
