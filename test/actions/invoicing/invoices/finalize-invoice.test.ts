/** Numbers without gaps, one invoice per period, and nothing half: decided by the database, whoever runs at once. */
import { expect } from 'chai';
import { computeInvoice } from '../../../../actions/invoicing/invoices/compute-invoice.ts';
import { finalizeWithin } from '../../../../actions/invoicing/invoices/finalize-invoice.ts';
import { billDuePeriods, billPeriod } from '../../../../actions/lifecycle/billing/bill-period.ts';
import { billThresholds } from '../../../../actions/lifecycle/billing/bill-thresholds.ts';
import { finalizeInvoice } from '../../../../actions/lifecycle/invoices/finalize-by-hand.ts';
import { finalizeDueInvoices } from '../../../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { listDueDrafts, listDueSubscriptions } from '../../../../storage/queue/due-billing.ts';
import { fixed, startWorld, usage, type World } from '../../../support/world.ts';

describe('billing when many run at once', () => {
  let world: World;
  let count = 0;
  before(async () => {
    world = await startWorld();
    await world.plan('Arrears', [fixed('5')]);
    await world.plan('Free', [fixed('0')]);
  });
  after(() => world.stop());

  /** So many customers with a draft for January, 2026. */
  async function drafts(customers: number): Promise<string[]> {
    const names = Array.from({ length: customers }, () => `customer ${++count}`);
    await world.on('2026-01-01');
    for (const name of names) await world.subscribe(name, 'Arrears');
    await world.on('2026-02-01');
    return Promise.all(names.map(async (name) => (await world.invoices(name))[0]!.id as string));
  }
  const scope = () => world.api.scope;
  const stores = () => world.api.services;
  const numbers = async (ids: string[]) =>
    (await Promise.all(ids.map((id) => world.get(`/invoices/${id}`))))
      .map((invoice) => invoice.invoice_number as string)
      .sort();

  it('20 finalizations at once, one of them broken off: numbers without a gap', async () => {
    const ids = await drafts(20);
    const { postgres } = stores();
    const broken = postgres.transaction(async (transaction) => {
      await finalizeWithin(transaction, scope(), { invoice_id: ids[7]!, now: world.now });
      throw new Error('the process dies here');
    });
    const others = ids.filter((_, index) => index !== 7);
    const settled = await Promise.allSettled([
      broken,
      ...others.map((id) => finalizeInvoice(stores(), scope(), id, world.now)),
    ]);
    expect(settled.map(({ status }) => status)).to.deep.equal(['rejected', ...Array(19).fill('fulfilled')]);
    expect((await world.get(`/invoices/${ids[7]}`)).invoice_status).to.equal('DRAFT');
    await finalizeInvoice(stores(), scope(), ids[7]!, world.now);
    expect(await numbers(ids)).to.deep.equal(
      Array.from({ length: 20 }, (_, index) => `INV-202602-${String(index + 1).padStart(5, '0')}`),
    );
  });

  it('the counter starts anew with the month, and is each environment’s own', async () => {
    const [id] = await drafts(1);
    world.at('2026-03-07');
    const { invoice_number, due_date, payment_status } = await finalizeInvoice(stores(), scope(), id!, world.now);
    expect(invoice_number).to.equal('INV-202603-00001');
    expect(new Date(due_date!).toISOString()).to.equal('2026-02-02T00:00:00.000Z');
    expect(payment_status).to.equal('PENDING');
  });

  it('the same invoice finalized twice at once becomes final once', async () => {
    const [id] = await drafts(1);
    const settled = await Promise.allSettled([1, 2, 3].map(() => finalizeInvoice(stores(), scope(), id!, world.now)));
    expect(settled.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
  });

  it('two schedulers at once draft one invoice per period', async () => {
    const name = `customer ${++count}`;
    await world.on('2026-01-01', () => world.subscribe(name, 'Arrears'));
    world.at('2026-04-01');
    const reports = await Promise.all([1, 2, 3, 4].map(() => billDuePeriods(stores(), world.now)));
    expect(reports.flatMap(({ failed }) => failed)).to.deep.equal([]);
    expect((await world.statements(name)).map((text) => text.split('\n')[0])).to.deep.equal([
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 5',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 5',
      'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 5',
    ]);
  });

  it('tenants take turns: years of one do not stand before the month of another, neither to be billed nor to become final', async () => {
    await world.on('2026-01-01');
    for (let n = 0; n < 3; n++) await world.subscribe(`customer ${++count}`, 'Arrears');
    const { key, scope: other } = await world.api.otherTenant();
    const made = async <Path extends string>(path: Path, body: object) =>
      (await world.api.request('POST', path, { key, body })).body;
    const { id: entity_id } = await made('/plans', { name: 'Theirs' });
    const { id: customer_id } = await made('/customers', { external_id: 'theirs' });
    await made('/prices', {
      ...fixed('1'),
      entity_type: 'PLAN',
      entity_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
    });
    const terms = { currency: 'usd', billing_period: 'MONTHLY', start_date: '2026-01-01T00:00:00Z' };
    const theirs = await made('/subscriptions', { customer_id, plan_id: entity_id, ...terms });
    world.at('2027-01-01');
    const due = await listDueSubscriptions(stores().postgres, { now: world.now, left: [] });
    expect(due.length).to.be.above(3);
    expect(new Set(due.slice(0, 2).map(({ tenant_id }) => tenant_id)))
      .to.include(other.tenant_id)
      .and.have.property('size', 2);
    expect(
      await listDueSubscriptions(stores().postgres, { now: world.now, left: due.map(({ id }) => id) }),
    ).to.deep.equal([]);
    const { failed } = await billDuePeriods(stores(), world.now);
    expect(failed).to.deep.equal([]);
    const shown = await world.api.request('GET', `/subscriptions/${theirs.id}`, { key });
    expect(shown.body.current_period_start).to.equal('2027-01-01T00:00:00Z');

    const drafts = await listDueDrafts(stores().postgres, { now: world.now, delay_seconds: 0, left: [] });
    expect(drafts.length).to.be.above(24);
    expect(new Set(drafts.slice(0, 2).map(({ tenant_id }) => tenant_id)).size, 'who comes first').to.equal(2);
    expect((await world.finalize()).waiting).to.deep.equal([]);
    expect(await listDueDrafts(stores().postgres, { now: world.now, delay_seconds: 0, left: [] })).to.deep.equal([]);
  });

  it('a crash between the draft and the move of the period leaves neither', async () => {
    const name = `customer ${++count}`;
    await world.on('2026-01-01', () => world.subscribe(name, 'Arrears'));
    world.at('2026-02-01');
    const id = world.id(`subscription ${name}`);
    const { postgres } = stores();
    // The last write of the transaction fails: what came before it in the same transaction goes too.
    await postgres.raw(`alter table subscriptions add constraint dies check (id <> '${id}' or version < 2) not valid`);
    const { failed } = await billDuePeriods(stores(), world.now);
    expect(failed.map((failure) => failure.id)).to.deep.equal([id]);
    expect(await world.statements(name)).to.deep.equal([]);
    expect((await world.subscription(name)).current_period_start).to.contain('2026-01-01');

    await postgres.raw('alter table subscriptions drop constraint dies');
    expect((await billDuePeriods(stores(), world.now)).failed).to.deep.equal([]);
    expect(await world.statements(name)).to.have.length(1);
  });

  it('one of many that cannot be billed keeps nobody from it, nor one that cannot become final', async () => {
    const names = Array.from({ length: 7 }, () => `customer ${++count}`);
    await world.finalize();
    await world.on('2026-01-01');
    for (const name of names) await world.subscribe(name, 'Arrears');
    world.at('2026-02-01');
    const ids = names.map((name) => world.id(`subscription ${name}`));
    const { postgres } = stores();
    await postgres.raw(
      `alter table subscriptions add constraint dies check (id <> '${ids[4]}' or version < 2) not valid`,
    );
    const { failed } = await billDuePeriods(stores(), world.now);
    expect(failed.map(({ id }) => id)).to.deep.equal([ids[4]]);
    await postgres.raw('alter table subscriptions drop constraint dies');
    const drafts = await Promise.all(names.map(async (name) => (await world.invoices(name)).map(({ id }) => id)));
    expect(drafts.map(({ length }) => length)).to.deep.equal([1, 1, 1, 1, 0, 1, 1]);

    await postgres.raw('update subscriptions set payment_terms = ? where id = ?', ['soon', ids[2]!]);
    const report = await finalizeDueInvoices(stores(), { now: world.now, delay_seconds: 0 });
    expect(report.failed.map(({ id }) => id)).to.deep.equal(drafts[2]);
    const shown = await Promise.all(drafts.flat().map((id) => world.get(`/invoices/${id}`)));
    const final = shown.filter(({ invoice_status }) => invoice_status === 'FINALIZED');
    expect(final).to.have.length(5);
    expect(shown.find(({ id }) => id === drafts[2]![0])!.invoice_status).to.equal('DRAFT');
    const given = final.map(({ invoice_number }) => Number(invoice_number!.split('-').at(-1)));
    expect(Math.max(...given) - Math.min(...given)).to.equal(4);
    expect(given, 'in the order of what has rested longest').to.deep.equal([...given].sort((x, y) => x - y));

    await postgres.raw('update subscriptions set payment_terms = null where id = ?', [ids[2]!]);
    expect((await billDuePeriods(stores(), world.now)).failed).to.deep.equal([]);
    expect((await finalizeDueInvoices(stores(), { now: world.now, delay_seconds: 0 })).failed).to.deep.equal([]);
  });

  describe('of a seller without a name', () => {
    const setNamed = async (is_named: boolean) => {
      const { tenant_id, environment_id } = scope();
      const type = is_named ? 'development' : 'production';
      await stores().postgres('environments').where({ id: environment_id }).update({ type });
      await stores().postgres('tenants').where({ id: tenant_id }).update({ is_named });
    };
    afterEach(() => setNamed(true));

    it('drafts wait, unlocked and not computed, until it has one', async () => {
      await world.finalize();
      const ids = await drafts(2);
      await setNamed(false);
      const finalize = () => finalizeDueInvoices(stores(), { now: world.now, delay_seconds: 0 });
      await stores().postgres.transaction(async (holder) => {
        await holder('invoices').whereIn('id', ids).forUpdate();
        const { without_seller, ...report } = await finalize();
        expect(report).to.deep.equal({ finalized: 0, skipped: 0, waiting: [], failed: [] });
        expect(without_seller).to.include.members(ids);
      });
      await setNamed(true);
      await finalize();
      const shown = await Promise.all(ids.map((id) => world.get(`/invoices/${id}`)));
      expect(shown.map(({ invoice_status }) => invoice_status)).to.deep.equal(['FINALIZED', 'FINALIZED']);
    });

    it('usage above a threshold waits, and is billed once then', async () => {
      await world.meter('calls');
      await world.plan('Calls', [usage('calls', '1')]);
      await world.on('2026-03-01', () => world.subscribe('metered', 'Calls', { auto_invoice_threshold: '100' }));
      await world.use('metered', 'calls', 120);
      world.at('2026-03-05');
      await world.waitForPipeline();
      await setNamed(false);
      const bill = () => billThresholds(stores(), world.now);
      const id = world.id('subscription metered');
      expect(await bill()).to.deep.equal({ invoiced: 0, without_seller: [id], failed: [] });
      expect(await world.invoices('metered')).to.deep.equal([]);
      await setNamed(true);
      expect(await bill()).to.deep.equal({ invoiced: 1, without_seller: [], failed: [] });
      expect(await bill()).to.deep.equal({ invoiced: 0, without_seller: [], failed: [] });
      expect((await world.invoices('metered')).map(({ total }) => total)).to.deep.equal(['120']);
    });
  });

  it('a subscription that somebody else holds is left to them', async () => {
    const name = `customer ${++count}`;
    await world.on('2026-01-01', () => world.subscribe(name, 'Arrears'));
    world.at('2026-02-01');
    const id = world.id(`subscription ${name}`);
    await stores().postgres.transaction(async (holder) => {
      await holder.raw('select 1 from subscriptions where id = ? for update', [id]);
      expect(await billPeriod(stores(), scope(), { subscription_id: id, now: world.now })).to.equal('idle');
    });
    expect(await billPeriod(stores(), scope(), { subscription_id: id, now: world.now })).to.equal('billed');
  });

  it('drafts rest for the delay since they were computed, then become final once', async () => {
    const [id] = await drafts(1);
    await world.finalize();
    const [rested] = await drafts(1);
    world.at('2026-02-01T01:59:59Z');
    expect((await world.finalize(7200)).finalized).to.equal(0);
    world.at('2026-02-01T02:00:00Z');
    const reports = await Promise.all(
      [1, 2].map(() => finalizeDueInvoices(stores(), { now: world.now, delay_seconds: 7200 })),
    );
    expect(reports.flatMap(({ failed }) => failed)).to.deep.equal([]);
    expect(reports.reduce((sum, { finalized }) => sum + finalized, 0)).to.equal(1);
    expect((await world.get(`/invoices/${rested}`)).invoice_status).to.equal('FINALIZED');
    expect(id).to.not.equal(rested);
  });

  it('an invoice of nothing is skipped: no number, never final, and may be computed again', async () => {
    const name = `customer ${++count}`;
    await world.on('2026-01-01', () => world.subscribe(name, 'Free'));
    await world.on('2026-02-01');
    const [skipped] = await world.invoices(name);
    expect([skipped!.invoice_status, skipped!.invoice_number]).to.deep.equal(['SKIPPED', null]);
    const again = await computeInvoice(stores(), scope(), skipped!.id, world.now);
    expect(again.skipped).to.equal(true);
    await world.finalize();
    expect((await world.invoices(name))[0]!.invoice_status).to.equal('SKIPPED');
    const refused = await finalizeInvoice(stores(), scope(), skipped!.id, world.now).catch((error) => error.code);
    expect(refused).to.equal('invalid_operation');
  });

  it('computing twice says the same, with the same number of lines', async () => {
    const [id] = await drafts(1);
    const first = await computeInvoice(stores(), scope(), id!, world.now);
    const second = await computeInvoice(stores(), scope(), id!, world.now);
    expect(second.invoice.total).to.equal(first.invoice.total);
    expect(second.invoice.line_items).to.have.length(first.invoice.line_items.length);
  });

  it('a cycle invoice that was computed before its period ended never becomes final', async () => {
    const [id] = await drafts(1);
    world.at('2026-01-20');
    await computeInvoice(stores(), scope(), id!, world.now);
    const refused = await finalizeInvoice(stores(), scope(), id!, world.now).catch((error) => error.message);
    expect(refused).to.contain('before its period ended');
  });
});
