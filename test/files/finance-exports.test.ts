/** Exports for finance: invoice lines, payments, credit notes, customers and subscriptions, compared with the interface's answers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { addDueExports } from '../../actions/reporting/exports/due-exports.ts';
import { EXPORT_KINDS } from '../../actions/reporting/exports/kinds.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { startScheduler } from '../../scheduler/main.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { csvRecords } from '../support/csv-records.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const MARCH = 'start_time=2026-03-01T00:00:00Z&end_time=2026-04-01T00:00:00Z';

describe('exports for finance', () => {
  const directory = mkdtempSync(join(tmpdir(), 'finance-exports-'));
  let world: World;

  const get = (path: string) => world.api.request('GET', `/exports/${path}`);
  const recordsOf = async (path: string) => {
    const answer = await get(path);
    expect(answer.status, answer.text).to.equal(200);
    return csvRecords(answer.text);
  };

  before(async () => {
    const config = { EXPORT_DIRECTORY: directory, EXPORT_DELAY_SECONDS: '0' };
    world = await startWorld({ now: '2026-02-28T00:00:00Z', config });
    await world.meter('calls', { type: 'COUNT' });
    await world.plan('Pro', [fixed('20', { invoice_cadence: 'ADVANCE' }), usage('calls', '0.5')]);
    await world.on('2026-03-01');
    await world.customer('acme');
    const fields = { name: '=Acme', address_country: 'DE', metadata: { region: 'eu' } };
    const changed = await world.api.request('PUT', `/customers/${world.id('customer acme')}`, { body: fields });
    expect(changed.status, changed.text).to.equal(200);
    await world.subscribe('acme', 'Pro');
    await world.subscribe('globex', 'Pro');
    const [invoice] = await world.invoices('acme');
    const paid = { destination_type: 'INVOICE', destination_id: invoice!.id, payment_method_type: 'OFFLINE' };
    const payment = await world.post('/payments', { ...paid, amount: '20', currency: 'usd' });
    await world.post(`/payments/${payment.id}/refund`, { amount: '3' });
    const [other] = await world.invoices('globex');
    const line_items = [{ invoice_line_item_id: other!.line_items[0]!.id, amount: '5' }];
    const note = { invoice_id: other!.id, reason: 'SERVICE_ISSUE', memo: '-sorry', line_items };
    await world.post('/creditnotes', note);
    await world.post('/creditnotes', { ...note, idempotency_key: 'draft', process_credit_note: false });
    await world.use('acme', 'calls', 1, { at: '2026-03-10T10:00:00Z' });
    await world.waitForPipeline();
    world.at('2026-04-02');
    await world.waitForPipeline();
  });
  after(async () => {
    await world.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  it('invoice lines: those of the final invoices, and they add up to the export of invoices', async () => {
    const lines = await recordsOf(`invoice_lines?${MARCH}&customer_metadata=region`);
    const invoices = await recordsOf(`invoice?${MARCH}`);
    expect(lines.length).to.be.greaterThan(1);
    for (const { id, subtotal } of invoices) {
      const own = lines.filter(({ invoice_id }) => invoice_id === id);
      expect(sumDecimals(own.map(({ amount }) => new Decimal(amount!))).toFixed()).to.equal(subtotal);
    }
    const acme = lines.find((line) => line.customer_external_id === 'acme')!;
    const [invoice] = await world.invoices('acme');
    expect(acme).to.include({
      invoice_number: invoice!.invoice_number,
      customer_name: "'=Acme",
      plan_display_name: 'Pro',
      price_type: 'FIXED',
      quantity: '1',
      amount: '20',
      currency: 'usd',
      period_start: '2026-03-01T00:00:00Z',
      period_end: '2026-04-01T00:00:00Z',
      'customer.metadata.region': 'eu',
    });
  });

  it('invoice lines: an invoice with many is read and written in parts', async () => {
    const { services, scope } = world.api;
    const [invoice] = await world.invoices('globex');
    const own = { ...scope, invoice_id: invoice!.id };
    const [line] = await services.postgres('invoice_line_items').where(own);
    const copies = Array.from({ length: 5_000 }, (_, nth) => ({ id: `copy_${nth}`, position: nth + 1 }));
    // Lines of a final invoice never change, so the rules of the database are passed over.
    const pass = (work: (database: Transaction) => Promise<unknown>) =>
      services.postgres.transaction(async (database) => {
        await database.raw('set local session_replication_role = replica');
        await work(database);
      });
    const columns = Object.keys(line).filter((name) => name !== 'id' && name !== 'position');
    const list = (of: string) => columns.map((name) => `${of}"${name}"`).join(', ');
    await pass((database) =>
      database.raw(
        `insert into invoice_line_items (id, position, ${list('')})
         select c.id, c.position, ${list('l.')}
           from invoice_line_items l, json_to_recordset(?::json) as c(id text, position int) where l.id = ?`,
        [JSON.stringify(copies), line.id],
      ),
    );
    const range = { start_us: Date.UTC(2026, 2, 1) * 1000, end_us: Date.UTC(2026, 3, 1) * 1000 };
    const input = { ...range, now: world.now, fields: [], signal: new AbortController().signal };
    const lengths: number[] = [];
    for await (const cells of EXPORT_KINDS.invoice_lines.cells(services, scope, input)) lengths.push(cells.length);
    await pass((database) => database('invoice_line_items').where(own).where('id', 'like', 'copy_%').delete());
    expect(Math.max(...lengths)).to.equal(5_000);
    expect(lengths.reduce((sum, length) => sum + length, 0)).to.be.greaterThan(5_000);
  });

  it('payments: those with money received in the range, with their refunds', async () => {
    const [payment, ...more] = await recordsOf(`payments?${MARCH}`);
    expect(more).to.deep.equal([]);
    const { items } = await world.get('/payments?limit=10');
    expect(payment).to.include({
      id: items[0]!.id,
      succeeded_at: items[0]!.succeeded_at!,
      customer_external_id: 'acme',
      payment_method_type: 'OFFLINE',
      payment_status: 'PARTIALLY_REFUNDED',
      amount: '20',
      refunded_amount: '3',
      voided_at: '',
    });
    expect(payment!.invoice_number).to.match(/^INV-202603-/);
    expect(await recordsOf('payments?start_time=2026-04-01T00:00:00Z')).to.deep.equal([]);
  });

  it('credit notes: those that took effect in the range', async () => {
    const notes = await recordsOf(`credit_notes?${MARCH}`);
    expect(notes).to.have.length(1);
    expect(notes[0]).to.include({
      credit_note_number: 'CN-202603-00001',
      credit_note_type: 'ADJUSTMENT',
      memo: "'-sorry",
      total_amount: '5',
      customer_external_id: 'globex',
    });
    expect(notes[0]!.invoice_number).to.match(/^INV-202603-/);
  });

  it('customers and subscriptions: all of them, without a range', async () => {
    const customers = await recordsOf('customers?customer_metadata=region');
    expect(
      customers.map((one) => [one.external_id, one.address_country, one['customer.metadata.region']]),
    ).to.have.deep.members([
      ['acme', 'DE', 'eu'],
      ['globex', '', ''],
    ]);
    const subscriptions = await recordsOf('subscriptions');
    expect(subscriptions).to.have.length(2);
    expect(subscriptions[0]).to.include({
      plan_name: 'Pro',
      subscription_status: 'active',
      billing_period_count: '1',
      start_date: '2026-03-01T00:00:00Z',
      end_date: '',
    });
    for (const [path, field] of [
      [`customers?${MARCH}`, 'start_time'],
      ['subscriptions?end_time=2026-04-01T00:00:00Z', 'end_time'],
      ['payments', 'start_time'],
      [`payments?${MARCH}&format=parquet&instant_format=spreadsheet`, 'instant_format'],
    ] as const) {
      const { status, body } = await get(path);
      expect([status, body.details?.field], path).to.deep.equal([400, field]);
    }
  });

  it('instants as a spreadsheet reads them', async () => {
    const [invoice] = await recordsOf(`invoice?${MARCH}&instant_format=spreadsheet`);
    expect(invoice!.period_start).to.equal('2026-03-01 00:00:00');
    const used = await world.api.request(
      'GET',
      `/events/usage/export?amounts=true&${MARCH}&instant_format=spreadsheet`,
    );
    expect(used.status, used.text).to.equal(200);
    expect(csvRecords(used.text)[0]!.start_time).to.equal('2026-03-01 00:00:00');
  });

  it('a schedule writes each payment, note and line once, and all customers each time', async () => {
    const scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    const folder = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
    const kinds = ['payments', 'credit_notes', 'invoice_lines', 'customers'] as const;
    for (const entity_type of kinds)
      await world.post('/tasks/scheduled', {
        connection_id: folder.id,
        entity_type,
        interval: 'hourly',
        job_config: { instant_format: 'spreadsheet' },
      });
    const due = (now: string) => {
      world.at(now);
      return addDueExports(world.api.services, { now: new Date(now), delay_seconds: 0 });
    };
    world.at('2026-04-02T00:20:00Z');
    await world.customer('late');
    const customer_id = world.id('customer late');
    const invoice = await world.post('/invoices', {
      ...{ customer_id, currency: 'usd', subtotal: '7', total: '7', amount_due: '7', invoice_status: 'FINALIZED' },
      line_items: [{ display_name: 'Onboarding', quantity: '1', amount: '7' }],
    });
    const [line] = invoice.line_items;
    const credited = [{ invoice_line_item_id: line!.id, amount: '2' }];
    await world.post('/creditnotes', { invoice_id: invoice.id, reason: 'SERVICE_ISSUE', line_items: credited });
    const pay = (fields: object) =>
      world.post('/payments', {
        ...{ destination_type: 'INVOICE', destination_id: invoice.id, payment_method_type: 'OFFLINE' },
        ...{ currency: 'usd', ...fields },
      });
    await pay({ amount: '4' });
    // Its money came in before the first interval.
    const { id } = await pay({ amount: '1', process_payment: false });
    const body = { payment_status: 'SUCCEEDED', succeeded_at: '2026-03-15T00:00:00Z' };
    const received = await world.api.request('PUT', `/payments/${id}`, { body });
    expect(received.status, received.text).to.equal(200);
    await due('2026-04-02T01:00:00Z');
    await due('2026-04-02T02:00:00Z');
    const tasks = await until(
      'eight files',
      async () => {
        const { items } = await world.get('/tasks?task_type=EXPORT&sort=range_start&order=asc&limit=100');
        return items.length === 8 && items.every(({ task_status }) => /COMPLETED|FAILED/.test(task_status)) && items;
      },
      20_000,
      100,
    );
    await scheduler.stop();
    const countsOf = (type: string) =>
      tasks.filter(({ entity_type }) => entity_type === type).map(({ total_records }) => total_records);
    expect(kinds.map((kind) => countsOf(kind.toUpperCase()))).to.deep.equal([
      [2, 0],
      [1, 0],
      [1, 0],
      [3, 3],
    ]);
  });
});
