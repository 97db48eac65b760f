/**
 * Nobody gets money for what was never paid (docs/rules/credit-notes.md, "Adjustments of changes"): the credit of a change lowers what the
 * subscription still owes, and only what was paid reaches a wallet.
 */
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import type { CreditNote, Invoice } from '../support/answers.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

describe('scenario: credits of what was not paid', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    const advance = { invoice_cadence: 'ADVANCE' };
    await world.plan('Large', [fixed('3100', advance)]);
    await world.plan('One', [fixed('31', { ...advance, display_name: 'one' })]);
    await world.plan('Two', [fixed('62', { ...advance, display_name: 'two' })]);
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const remaining = async (customer: string) =>
    (await world.invoices(customer))
      .filter(({ invoice_status }) => invoice_status === 'FINALIZED')
      .map(({ amount_remaining }) => amount_remaining);
  const inWallet = async (customer: string) => {
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    return wallets.map(({ balance }) => balance);
  };
  const pay = (
    { id, currency, amount_remaining }: Pick<Invoice, 'id' | 'currency' | 'amount_remaining'>,
    amount = amount_remaining,
  ) =>
    world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: id,
      payment_method_type: 'OFFLINE',
      amount,
      currency,
    });
  const changePlan = (customer: string, plan: string, fields = {}) =>
    world.post(path(customer, 'change/execute'), {
      target_plan_id: world.id(`plan ${plan}`),
      proration_behavior: 'create_prorations',
      billing_cadence: 'RECURRING',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cycle: 'anniversary',
      ...fields,
    });
  const cancel = (customer: string, fields = {}) =>
    world.cancel(customer, { cancellation_type: 'immediate', proration_behavior: 'create_prorations', ...fields });
  const notesOf = async (customer: string) => {
    const { items } = await world.get('/creditnotes?limit=100');
    return items.filter((note) => note.customer_id === world.id(`customer ${customer}`));
  };

  beforeEach(() => world.at('2026-01-01T00:00:00Z'));

  it('a cancellation on a date leaves what was served due: $4.17 of $3,100', async () => {
    await world.on('2026-01-01', () => world.subscribe('dated', 'Large'));
    await cancel('dated', { cancellation_type: 'scheduled_date', cancel_at: '2026-01-01T01:00:00Z' });
    await world.on('2026-01-02');
    expect(await remaining('dated')).to.deep.equal(['4.17']);
    expect(await inWallet('dated')).to.deep.equal([]);
    const [note] = await notesOf('dated');
    expect(note).to.include({
      credit_note_type: 'ADJUSTMENT',
      credit_note_status: 'FINALIZED',
      total_amount: '3095.83',
      reason: 'SUBSCRIPTION_CANCELLATION',
    });
    const [opening, change] = await world.invoices('dated');
    expect([note!.invoice_id, note!.change_invoice_id]).to.deep.equal([opening!.id, change!.id]);
    // It can still be credited, as far as it is due.
    const credit = (amount: string) =>
      world.api.request('POST', '/creditnotes', {
        body: {
          invoice_id: opening!.id,
          reason: 'SERVICE_ISSUE',
          line_items: [{ invoice_line_item_id: opening!.line_items[0]!.id, amount }],
        },
      });
    const tooMuch = await credit('4.18');
    expect([tooMuch.status, tooMuch.body.details!.max_allowed]).to.deep.equal([400, '4.17']);
    expect((await credit('4.17')).status).to.equal(201);
    expect(await remaining('dated')).to.deep.equal(['0']);
    const voided = await world.api.request('POST', `/creditnotes/${note!.id}/void`, { body: {} });
    expect(voided.status, 'the adjustment of a change stays').to.equal(400);
  });

  it('an immediate one alike, and of what was paid in part the rest of the payment reaches the wallet', async () => {
    for (const name of ['unpaid', 'in part', 'paid']) await world.subscribe(name, 'One');
    const [inPart] = await world.invoices('in part');
    await pay(inPart!, '20');
    const [paid] = await world.invoices('paid');
    await pay(paid!);
    await world.on('2026-01-16');
    for (const name of ['unpaid', 'in part', 'paid']) await cancel(name);
    expect([await remaining('unpaid'), await inWallet('unpaid')]).to.deep.equal([['15'], []]);
    expect([await remaining('in part'), await inWallet('in part')]).to.deep.equal([['0'], ['5']]);
    expect([await remaining('paid'), await inWallet('paid')]).to.deep.equal([['0'], ['16']]);
  });

  it('$31 unpaid, changed to $62 on the 16th: 31 and 16 are due', async () => {
    await world.subscribe('upgraded', 'One');
    await world.on('2026-01-16');
    await changePlan('upgraded', 'Two');
    expect(await remaining('upgraded')).to.deep.equal(['31', '16']);
    expect(await inWallet('upgraded')).to.deep.equal([]);
  });

  it('an upgrade and a cancellation at one instant leave the 15 of the days before', async () => {
    await world.subscribe('gone', 'One');
    await world.on('2026-01-16');
    await changePlan('gone', 'Two');
    await cancel('gone');
    expect(await remaining('gone')).to.deep.equal(['15', '0']);
    expect(await inWallet('gone')).to.deep.equal([]);
  });

  it('a downgrade lowers the opening, and what is changed back is due again', async () => {
    await world.subscribe('down', 'Two');
    await world.on('2026-01-16');
    await changePlan('down', 'One');
    expect(await remaining('down')).to.deep.equal(['46']);
    await changePlan('down', 'Two');
    expect(await remaining('down')).to.deep.equal(['46', '16']);
    expect(await inWallet('down')).to.deep.equal([]);
  });

  it('what was paid lowers the other invoices of the subscription, oldest first, before it reaches the wallet', async () => {
    await world.subscribe('others', 'One');
    await world.on('2026-02-01');
    await world.finalize();
    await world.on('2026-03-01');
    await world.finalize();
    const [, , third] = await world.invoices('others');
    await pay(third!);
    await world.on('2026-03-11');
    await cancel('others');
    // 21 of the 31 that were paid for March.
    expect(await remaining('others')).to.deep.equal(['10', '31', '0']);
    expect(await inWallet('others')).to.deep.equal([]);
  });

  it('tax goes with what is credited: of 100 and 20, half of it', async () => {
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '20' });
    await world.customer('taxed');
    const of = { entity_type: 'customer', entity_id: world.id('customer taxed') };
    await world.post('/taxes/associations', { ...of, tax_rate_code: 'vat' });
    await world.plan('Hundred', [fixed('100', { invoice_cadence: 'ADVANCE' })]);
    await world.subscribe('taxed', 'Hundred');
    const [opening] = await world.invoices('taxed');
    await pay(opening!, '70');
    world.at('2026-01-16T12:00:00Z');
    await cancel('taxed');
    // 60 were served, 50 and their tax: 70 were paid.
    expect([await remaining('taxed'), await inWallet('taxed')]).to.deep.equal([['0'], ['10']]);
    const [note] = await notesOf('taxed');
    expect([note!.total_amount, note!.subtotal, note!.total_tax]).to.deep.equal(['50', '41.67', '8.33']);
  });

  it('one that is invoiced with a parent lowers the invoice of the parent', async () => {
    await world.subscribe('child', 'One', { start_date: '2026-01-01T00:00:00Z' });
    await world.subscribe('parent', 'One', {
      inheritance: { subscriptions_ids_for_grouped_invoicing: [world.id('subscription child')] },
    });
    await world.on('2026-02-01');
    await world.finalize();
    await world.on('2026-02-15');
    await cancel('child');
    // 31 of the parent, and 15.50 of the child for its half of February.
    expect((await remaining('parent')).at(-1)).to.equal('46.5');
    expect([await inWallet('parent'), await inWallet('child')]).to.deep.equal([[], []]);
  });

  it('the credit of a child that pays the rest of the invoice activates the parent that waits for it', async () => {
    const group = {
      grouped_invoicing_children_to_create: [{ plan_id: world.id('plan One'), external_customer_id: 'waiting child' }],
    };
    await world.customer('waiting child');
    await world.subscribe('waiting parent', 'One', {
      start_date: '2026-01-02T00:00:00Z',
      collection_method: 'send_invoice',
      payment_behavior: 'default_incomplete',
      inheritance: group,
    });
    await world.on('2026-01-02');
    const parent_subscription_ids = [world.id('subscription waiting parent')];
    const [child] = (await world.post('/subscriptions/search', { parent_subscription_ids })).items;
    const [opening] = await world.invoices('waiting parent');
    expect([opening!.total, child!.subscription_status]).to.deep.equal(['62', 'active']);
    await pay(opening!, '47');
    const status = async () =>
      (await world.get(`/subscriptions/${world.id('subscription waiting parent')}`)).subscription_status;
    expect(await status()).to.equal('incomplete');
    world.at('2026-01-17T00:00:00Z');
    await world.post(`/subscriptions/${child!.id}/cancel`, {
      cancellation_type: 'immediate',
      proration_behavior: 'create_prorations',
    });
    expect(await remaining('waiting parent')).to.deep.equal(['0']);
    expect(await status()).to.equal('active');
  });

  it('a void invoice returns that credit to the next invoice, which activates the parent once', async () => {
    await world.customer('returning child');
    await world.subscribe('returning parent', 'One', {
      start_date: '2026-01-02T00:00:00Z',
      collection_method: 'send_invoice',
      payment_behavior: 'default_incomplete',
      inheritance: {
        grouped_invoicing_children_to_create: [
          { plan_id: world.id('plan One'), external_customer_id: 'returning child' },
        ],
      },
    });
    await world.on('2026-01-02');
    const parent_subscription_ids = [world.id('subscription returning parent')];
    const [child] = (await world.post('/subscriptions/search', { parent_subscription_ids })).items;
    const status = async () =>
      (await world.get(`/subscriptions/${world.id('subscription returning parent')}`)).subscription_status;
    world.at('2026-01-10T00:00:00Z');
    const advance = { invoice_cadence: 'ADVANCE', billing_period: 'MONTHLY', price_unit_type: 'FIAT' };
    const seat = await world.post(`/subscriptions/${child!.id}/lineitems`, { price: fixed('62', advance) });
    const { items } = await world.get(`/invoices?subscription_id=${child!.id}`);
    await pay(items[0]!);
    world.at('2026-01-17T00:00:00Z');
    await world.api.request('DELETE', `/subscriptions/lineitems/${seat.id}`, { body: {} });
    // 16 of 31 days of the seat are left.
    expect(await remaining('returning parent')).to.deep.equal(['30']);
    // The subscription waits for an invoice whose collection failed, too.
    const customer_id = world.id('customer returning parent');
    const config = { default_gateway: 'sandbox', retry_after_days: [], after_last_try: 'mark_incomplete' };
    expect((await world.api.request('PUT', '/settings/payment_config', { body: { value: config } })).status).to.equal(
      200,
    );
    await world.post(`/payments/customers/${customer_id}/methods`, {
      gateway_payment_method_id: 'pm_sandbox_declined',
    });
    const amounts = { currency: 'usd', subtotal: '8', total: '8', amount_due: '8' };
    const subscription_id = world.id('subscription returning parent');
    const fee = await world.post('/invoices', {
      customer_id,
      subscription_id,
      invoice_status: 'FINALIZED',
      ...amounts,
    });
    await world.api.request('POST', `/invoices/${fee.id}/payment/attempt`);
    await processDuePayments(world.api.services, { now: new Date(world.now.getTime() + 60_000) });
    expect([await remaining('returning parent'), await status()]).to.deep.equal([['8', '30'], 'incomplete']);
    const opening = (await world.invoices('returning parent')).find(({ total }) => total === '62');
    const voided = await world.api.request('POST', `/invoices/${opening!.id}/void`, { body: {} });
    expect(voided.status, voided.text).to.equal(200);
    expect([await remaining('returning parent'), await status()]).to.deep.equal([['0'], 'active']);
    // The void invoice returns 32: 8 paid the other invoice, 24 reach the wallet.
    expect(await inWallet('returning parent')).to.deep.equal(['24']);
  });

  it('a payment that comes at the same time pays what is left, or the wallet gets the rest', async () => {
    for (const name of ['race a', 'race b', 'race c']) {
      world.at('2026-01-01T00:00:00Z');
      await world.subscribe(name, 'One');
      const [opening] = await world.invoices(name);
      world.at('2026-01-16T00:00:00Z');
      await Promise.all([pay(opening!), cancel(name)]);
      const [after] = await world.invoices(name);
      const [wallet = '0'] = await inWallet(name);
      expect([after!.amount_paid, after!.amount_remaining]).to.deep.equal(['31', '0']);
      // The payment came first, and 16 of it reach the wallet; or it came to what was 15 by then, and is too much by 16.
      expect([wallet, after!.overpaid_amount ?? '0']).to.be.deep.oneOf([
        ['16', '0'],
        ['0', '16'],
      ]);
    }
  });

  it('a note that left a later change too little is not voided', async () => {
    await world.subscribe('noted', 'One');
    const [opening] = await world.invoices('noted');
    const note = (memo: string, amount: string) =>
      world.post('/creditnotes', {
        invoice_id: opening!.id,
        memo,
        reason: 'SERVICE_ISSUE',
        line_items: [{ invoice_line_item_id: opening!.line_items[0]!.id, amount }],
      });
    const voidNote = async ({ id }: CreditNote) =>
      (await world.api.request('POST', `/creditnotes/${id}/void`, { body: {} })).status;
    const small = await note('small', '2');
    await world.on('2026-01-16');
    await changePlan('noted', 'Two');
    expect(await voidNote(small), 'enough was left').to.equal(200);
    await world.subscribe('noted much', 'One', { start_date: '2026-01-16T00:00:00Z' });
    const [other] = await world.invoices('noted much');
    const large = await world.post('/creditnotes', {
      invoice_id: other!.id,
      reason: 'SERVICE_ISSUE',
      line_items: [{ invoice_line_item_id: other!.line_items[0]!.id, amount: '30' }],
    });
    await cancel('noted much');
    expect(await remaining('noted much')).to.deep.equal(['0']);
    // 31 would come back of it, and 1 did: void, it would leave 30 due for no time at all.
    expect(await voidNote(large)).to.equal(400);
  });

  describe('when an invoice is void', () => {
    const voidOf = (invoice: Invoice) => world.api.request('POST', `/invoices/${invoice.id}/void`, { body: {} });

    it('a change that lowered it alone is void with it, and billed again it charges what was served', async () => {
      await world.subscribe('void', 'One');
      await world.on('2026-01-16');
      await cancel('void');
      const [opening] = await world.invoices('void');
      const again = await world.post(`/invoices/${opening!.id}/recalculate?finalize=true`, {});
      expect([again.total, again.amount_remaining]).to.deep.equal(['15', '15']);
      expect((await world.invoices('void')).map(({ invoice_status }) => invoice_status)).to.deep.equal([
        'VOIDED',
        'VOIDED',
        'FINALIZED',
      ]);
      expect(await inWallet('void')).to.deep.equal([]);
    });

    it('prepaid credits that the change returned to their lots return once', async () => {
      await world.customer('credited');
      const wallet = await world.post('/wallets', {
        external_customer_id: 'credited',
        currency: 'usd',
        config: { allowed_price_types: ['ALL'] },
      });
      const granted = { credits_to_add: '6.2', transaction_reason: 'FREE_CREDIT_GRANT' };
      await world.post(`/wallets/${wallet.id}/top-up`, granted);
      await world.subscribe('credited', 'One');
      expect(await remaining('credited')).to.deep.equal(['24.8']);
      await world.on('2026-01-16');
      await cancel('credited');
      // 16 of 31 come back, 3.20 of them to the lots; 12 of 24.80 are due.
      expect([await remaining('credited'), await inWallet('credited')]).to.deep.equal([['12'], ['3.2']]);
      const [opening] = await world.invoices('credited');
      expect((await voidOf(opening!)).status).to.equal(200);
      expect(await inWallet('credited')).to.deep.equal(['6.2']);
    });

    it('a plan change as well: both parts of the period are billed again', async () => {
      await world.subscribe('changed', 'Two');
      await world.on('2026-01-16');
      await changePlan('changed', 'One');
      const [opening] = await world.invoices('changed');
      expect(opening!.amount_remaining).to.equal('46');
      const again = await world.post(`/invoices/${opening!.id}/recalculate?finalize=true`, {});
      expect(again.total, '30 of Two and 16 of One').to.equal('46');
    });

    it('what a wallet has got of it is not given twice: it stays', async () => {
      await world.subscribe('stays', 'One');
      await world.pay('stays');
      await world.on('2026-01-16');
      await cancel('stays');
      const [opening] = await world.invoices('stays');
      expect((await voidOf(opening!)).status).to.equal(400);
    });

    it('what credits of others had paid of it lowers what is owed, and then reaches the wallet', async () => {
      await world.subscribe('moved', 'One');
      await world.on('2026-02-01');
      await world.finalize();
      await world.on('2026-03-01');
      await world.finalize();
      const [january, , march] = await world.invoices('moved');
      await pay(march!);
      await world.on('2026-03-11');
      await cancel('moved');
      expect(await remaining('moved')).to.deep.equal(['10', '31', '0']);
      expect((await voidOf(january!)).status).to.equal(200);
      expect(await remaining('moved')).to.deep.equal(['10', '0']);
      const [, february] = await world.invoices('moved');
      expect((await voidOf(february!)).status).to.equal(200);
      expect(await inWallet('moved')).to.deep.equal(['21']);
    });
  });
});
