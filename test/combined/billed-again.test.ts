/** Invoices that are voided and billed again, made final at once, told again, numbered otherwise, and broken down. */
import { expect } from 'chai';
import { tryFinalization } from '../../actions/lifecycle/invoices/finalize-later.ts';
import type { Invoice } from '../support/answers.ts';
import { fixed, startWorld, statement, tiers, usage, type World } from '../support/world.ts';

describe('an invoice once more', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.plan('Pro', [
      fixed('10', { invoice_cadence: 'ADVANCE', display_name: 'Base' }),
      tiers(
        'calls',
        [
          [100, '0.10'],
          [null, '0.033'],
        ],
        { display_name: 'Calls' },
      ),
      usage('peak', '1', { display_name: 'Peak' }),
    ]);
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
    await world.on('2026-01-10', () =>
      world.send([
        call('calls', 70, 'eu', 'web'),
        call('calls', 71, 'us', 'web'),
        call('calls', 70, 'us', 'app'),
        call('peak', 7, 'eu', 'web'),
        call('peak', 5, 'us', 'app'),
      ]),
    );
    await world.on('2026-02-01');
    await world.finalize();
  });
  after(() => world.stop());

  const call = (event_name: string, n: number, region: string, source: string) => ({
    event_name,
    external_customer_id: 'acme',
    timestamp: '2026-01-10T00:00:00Z',
    properties: { n, region },
    source,
  });
  const ask = <Method extends string, Path extends string>(method: Method, path: Path) =>
    world.api.request(method, path);
  const cycle = async () =>
    (await world.invoices('acme')).findLast((one) => one.billing_reason === 'SUBSCRIPTION_CYCLE');
  const amounts = (invoice: Invoice) => statement(invoice).split('\n').slice(1);

  it('is broken down by source and properties, to the last minor unit of its lines', async () => {
    const { id, line_items } = (await cycle())!;
    const whole = await world.get(`/invoices/${id}?group_by=source,properties.region&expand_by_source=true`);
    const calls = whole.line_items.find((line) => line.display_name === 'Calls');
    expect(calls!.amount).to.equal('13.66');
    expect(calls!.usage_breakdown).to.deep.equal([
      part({ source: 'web', region: 'us' }, { cost: '4.6', usage: '71', percentage: '33.65' }),
      part({ source: 'app', region: 'us' }, { cost: '4.53', usage: '70', percentage: '33.18' }),
      part({ source: 'web', region: 'eu' }, { cost: '4.53', usage: '70', percentage: '33.18' }),
    ]);
    expect(calls!.usage_analytics!.map(({ source, cost, event_count }) => [source, cost, event_count])).to.deep.equal([
      ['web', '9.13', 2],
      ['app', '4.53', 1],
    ]);
    const peak = whole.line_items.find((line) => line.display_name === 'Peak');
    expect(peak!.usage_breakdown!.map(({ cost }) => cost)).to.deep.equal(['4.08', '2.92']);
    const base = whole.line_items.find((line) => line.display_name === 'Base');
    expect([base!.usage_breakdown, base!.usage_analytics]).to.deep.equal([null, null]);
    expect(line_items[0]!.usage_breakdown, 'without being asked').to.equal(null);
    const [feature] = (await world.get(`/invoices/${id}?group_by=feature_id`)).line_items.filter(
      (line) => line.display_name === 'Calls',
    );
    expect(feature!.usage_breakdown).to.have.length(1);
    expect(feature!.usage_breakdown![0]).to.include({ cost: '13.66', percentage: '100' });
    expect((await ask('GET', `/invoices/${id}?group_by=moon`)).body.details!.field).to.equal('group_by[0]');
  });

  const part = (
    grouped_by: { source: string; region: string },
    fields: { cost: string; usage: string; percentage: string },
  ) => ({ grouped_by, ...fields, event_count: 1 });

  it('voided and billed again it says the same, once, and what came since with it', async () => {
    const first = await cycle();
    expect((await ask('POST', `/invoices/${first!.id}/void`)).status).to.equal(200);
    const again = await ask('POST', `/invoices/${first!.id}/recalculate`);
    expect(again.status, again.text).to.equal(200);
    expect(again.body).to.include({ invoice_status: 'DRAFT', total: first!.total, recalculated_invoice_id: null });
    expect(amounts(again.body)).to.deep.equal(amounts(first!));
    expect((await world.get(`/invoices/${first!.id}`)).recalculated_invoice_id).to.equal(again.body.id);
    const twice = await ask('POST', `/invoices/${first!.id}/recalculate`);
    expect([twice.status, twice.body.details!.recalculated_invoice_id]).to.deep.equal([400, again.body.id]);

    await world.send([{ ...call('calls', 100, 'eu', 'web'), event_id: 'late' }]);
    await world.waitForPipeline();
    const draft = await ask('POST', `/invoices/${again.body.id}/recalculate-v2?finalize=true`);
    expect(draft.status, draft.text).to.equal(200);
    expect(draft.body).to.include({ id: again.body.id, invoice_status: 'FINALIZED', total: '33.96' });
    expect((await ask('POST', `/invoices/${again.body.id}/recalculate-v2`)).status).to.equal(400);
  });

  it('paid and recalculated it is voided, the money is in the wallet, and the new one is final when asked', async () => {
    const paid = await cycle();
    const body = { payment_status: 'SUCCEEDED' };
    expect((await world.api.request('PUT', `/invoices/${paid!.id}/payment`, { body })).status).to.equal(200);
    const again = await ask('POST', `/invoices/${paid!.id}/recalculate?finalize=true`);
    expect(again.status, again.text).to.equal(200);
    // What was paid is in the prepaid wallet, which is made for it and pays all of the new one.
    const credits = { total_credits_applied_after_tax: '33.96', amount_remaining: '0' };
    expect(again.body).to.include({ invoice_status: 'FINALIZED', ...credits });
    expect(await world.get(`/invoices/${paid!.id}`)).to.include({
      invoice_status: 'VOIDED',
      payment_status: 'REFUNDED',
    });
    const [wallet] = await world.get(`/customers/${paid!.customer_id}/wallets`);
    expect([paid!.total, wallet!.balance]).to.deep.equal(['33.96', '0']);
  });

  it('is not recalculated where it follows from no period', async () => {
    const written = { currency: 'usd', amount_due: '5', total: '5', subtotal: '5' };
    const { customer_id } = (await cycle())!;
    const { id } = await world.post('/invoices', { customer_id, ...written });
    for (const name of ['recalculate', 'recalculate-v2'])
      expect((await ask('POST', `/invoices/${id}/${name}`)).body.details, name).to.deep.equal({ field: 'id' });
  });

  it('is numbered by the setting, and no number is given twice when that changes', async () => {
    const { customer_id } = (await cycle())!;
    const final = async () => {
      const amounts_ = { currency: 'usd', amount_due: '5', total: '5', subtotal: '5', invoice_status: 'FINALIZED' };
      return (await world.post('/invoices', { customer_id, ...amounts_ })).invoice_number;
    };
    const set = async (value: object) => {
      const answer = await world.api.request('PUT', '/settings/invoice_config', { body: { value } });
      expect(answer.status, answer.text).to.equal(200);
    };
    await set({ prefix: 'ACME', separator: '/', format: 'YYYY', suffix_length: 3, start_sequence: 40 });
    expect([await final(), await final()]).to.deep.equal(['ACME/2026/040', 'ACME/2026/041']);
    await set({ start_sequence: 1 });
    expect(await final()).to.equal('ACME/2026/042');
    await world.api.request('DELETE', '/settings/invoice_config');
  });

  it('rests as long as its environment says', async () => {
    await world.on('2026-03-01');
    const set = (seconds: number) =>
      world.api.request('PUT', '/settings/invoice_config', {
        body: { value: { finalization_delay_seconds: seconds } },
      });
    await set(86_400);
    await world.finalize(0);
    const draft = await cycle();
    expect(draft!.invoice_status, 'a day').to.equal('DRAFT');
    await set(0);
    expect((await world.finalize(7200)).finalized, 'not at all').to.be.greaterThan(0);
    expect((await world.get(`/invoices/${draft!.id}`)).invoice_status).to.equal('FINALIZED');
    await world.api.request('DELETE', '/settings/invoice_config');
  });

  it('is made final at once in the background, and told again', async () => {
    await world.on('2026-04-01');
    const draft = await cycle();
    const asked = await ask('POST', `/invoices/temporal/${draft!.id}/finalize`);
    expect(asked.status, asked.text).to.equal(202);
    const attempt = { attempt: 1, is_last: false, clock: () => world.now, timeout_ms: 60_000 };
    const place = { ...world.api.scope, workflow_id: asked.body.workflow_id };
    const how = { ...attempt, signal: AbortSignal.timeout(60_000) };
    expect(await tryFinalization(world.api.services, place, how)).to.equal('completed');
    expect((await cycle())!.invoice_status).to.equal('FINALIZED');
    expect((await ask('POST', `/invoices/temporal/${draft!.id}/finalize`)).status).to.equal(400);

    const told = async () => (await world.get(`/webhooks/events?limit=1&order=desc&sort=id`)).items[0];
    expect((await ask('POST', `/invoices/${draft!.id}/comms/trigger`)).status).to.equal(200);
    expect(await told()).to.include({ event_name: 'invoice.communication.triggered', entity_id: draft!.id });
    const again = await ask('POST', `/invoices/${draft!.id}/webhook/trigger?event_name=invoice.update.finalized`);
    expect([again.status, again.body.event_name]).to.deep.equal([200, 'invoice.finalized']);
    const { event_name, payload } = (await told())!;
    expect([event_name, (payload.invoice as Invoice).line_items.length]).to.deep.equal(['invoice.finalized', 3]);
    const untrue = await ask('POST', `/invoices/${draft!.id}/webhook/trigger?event_name=invoice.update.voided`);
    expect(untrue.body.code).to.equal('invalid_operation');
    const other = await ask('POST', `/invoices/${draft!.id}/webhook/trigger?event_name=customer.created`);
    expect(other.body.details!.field).to.equal('event_name');
  });

  it('is taxed with what is attached to its draft, and billed again with the same', async () => {
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '10' });
    await world.on('2026-05-01');
    const draft = await cycle();
    const attached = { tax_rate_code: 'vat', entity_type: 'invoice', entity_id: draft!.id };
    await world.post('/taxes/associations', attached);
    await world.finalize();
    expect(await cycle()).to.include({ id: draft!.id, subtotal: '10', total_tax: '1', total: '11' });
    const again = await ask('POST', `/invoices/${draft!.id}/recalculate?finalize=true`);
    expect(again.body).to.include({ invoice_status: 'FINALIZED', total_tax: '1', total: '11' });
  });

  it('an opening that comes to nothing when it is billed again is waited for no longer', async () => {
    const unpaid = { payment_behavior: 'default_incomplete', collection_method: 'send_invoice' };
    const edit = async (id: string, body: object) => {
      const answer = await world.api.request('POST', `/invoices/${id}/compute`, { body });
      expect(answer.status, answer.text).to.be.oneOf([200, 202]);
    };
    for (const name of ['skipped', 'final', 'rested']) {
      const { latest_invoice } = await world.subscribe(name, 'Pro', unpaid);
      const state = async () => (await world.subscription(name)).subscription_status;
      expect(await state()).to.equal('incomplete');
      const again = await ask('POST', `/invoices/${latest_invoice!.id}/recalculate`);
      expect([again.body.invoice_status, await state()], again.text).to.deep.equal(['DRAFT', 'incomplete']);
      if (name === 'skipped') await edit(again.body.id, { line_items: [] });
      else {
        const coupon = { name, coupon_code: name, cadence: 'once', type: 'percentage', percentage_off: '100' };
        const { id: coupon_id } = await world.post('/coupons', coupon);
        await edit(again.body.id, { invoice_coupons: [{ coupon_id }] });
        if (name === 'final') await world.post(`/invoices/${again.body.id}/finalize`, {});
        else await world.finalize();
      }
      expect(await state(), name).to.equal('active');
    }
  });
});
