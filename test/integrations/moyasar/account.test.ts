/**
 * An account at Moyasar: pushed, found, voided and pulled invoices. An interrupted push is resumed with one invoice there, although Moyasar
 * has no idempotency keys for invoices. Requests go to a stateful fake.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PushedInvoiceLine } from '../../../core/platform/integration/pushed-lines.ts';
import type { ProviderAccount, PushedInvoice } from '../../../integrations/account.ts';
import { moyasar } from '../../../integrations/moyasar/provider.ts';
import { catchFailure } from '../../support/providers/failure.ts';
import { MOYASAR_DISTURBANCES, MoyasarFake } from '../../support/providers/moyasar-fake.ts';

const line = (amount: string, description = `for ${amount}`): PushedInvoiceLine => {
  return { description, amount, line_item_id: null, period_start: null, period_end: null };
};

const INVOICE: PushedInvoice = {
  ...{ key: 'push:2', key_age_seconds: 0, key_created_at: new Date(), is_key_renewed: false },
  ...{ invoice_id: 'inv_1', invoice_number: 'INV-0001', provider_customer_id: 'cust_1', currency: 'sar' },
  lines: [line('100.10'), line('19')],
  ...{ total: '119.1', due_date: null },
};

describe('integrations/moyasar/account', () => {
  let fake: MoyasarFake;
  let account: ProviderAccount;

  const open = (secret_key = 'sk_test_fake') => moyasar.account!.open({ secret_key }, { address: fake.url });

  beforeEach(async () => {
    fake = await new MoyasarFake().start();
    account = await open();
  });
  afterEach(() => fake.stop());

  const push = (more: Partial<PushedInvoice> = {}) => account.pushInvoice!({ ...INVOICE, ...more });
  const invoices = () => [...fake.book.invoices.values()];
  const found = () => invoices().map(({ status, amount }) => `${status} ${amount}`);
  const findOpen = () => found().filter((one) => one.startsWith('initiated'));

  describe('credentials', () => {
    it('are tested, although Moyasar names no account', async () => {
      expect(await account.identify()).to.deep.equal({ provider_account_id: null, name: null });
    });

    it('are refused and not quoted if they are wrong', async () => {
      const wrong = await open('sk_test_wrong1234');
      const failure = await catchFailure(() => wrong.identify());
      expect(failure).to.include({ error_class: 'person', is_unauthorized: true });
      expect(`${failure.message} ${failure.stack}`).not.to.contain('wrong1234');
    });

    it('show whether they move real money', () => {
      const detectLive = (secret_key: string) => moyasar.account!.detectLive({ secret_key });
      expect(['sk_test_1', 'sk_live_1'].map(detectLive)).to.deep.equal([false, true]);
      for (const secret_key of ['pk_live_1', 'sk_1', 'xsk_live_1'])
        expect(() => detectLive(secret_key)).to.throw('must begin with sk_test_ or sk_live_');
    });
  });

  describe('pushInvoice', () => {
    it('makes a page over the total, whose description has the lines', async () => {
      const { provider_entity_id, url } = await push();
      const [there] = invoices();
      expect([there!.id, there!['url']]).to.deep.equal([provider_entity_id, url]);
      expect(there).to.deep.include({
        ...{ status: 'initiated', amount: 11_910, currency: 'SAR' },
        description: 'Invoice INV-0001: for 100.10: 100.10, for 19: 19',
        metadata: {
          ...{ farthing_invoice_copy: 'inv_1', farthing_invoice_id: 'inv_1', farthing_invoice_number: 'INV-0001' },
        },
      });
    });

    it('cuts a long description, and sends credits as part of the total', async () => {
      await push({ lines: [line('100', 'x'.repeat(500)), line('-20', 'Paid already')], total: '80' });
      expect(found()).to.deep.equal(['initiated 8000']);
      expect(invoices()[0]!.description).to.have.length(255);
    });

    const refused: [name: string, more: Partial<PushedInvoice>, why: RegExp][] = [
      ['a part of the smallest unit', { lines: [line('1.005')], total: '1.005' }, /cannot represent 1\.005 sar/],
      ['lines that do not add up', { total: '119.11' }, /lines add up to 119\.1 sar, the total is 119\.11/],
      ['less than the smallest payment', { lines: [line('0.99')], total: '0.99' }, /at least 1 sar, not 0\.99/],
    ];
    for (const [name, more, why] of refused)
      it(`refuses before any request: ${name}`, async () => {
        const failure = await catchFailure(() => push(more));
        expect(failure.error_class).to.equal('person');
        expect(failure.message).to.match(why);
        expect(fake.requests).to.deep.equal([]);
      });

    it('names a currency that the account does not take', async () => {
      const failure = await catchFailure(() => push({ currency: 'eur' }));
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.match(/^Moyasar takes no payments in eur: .*currency: is not supported/);
    });

    for (const at of [/^GET invoices$/, /^POST invoices$/])
      for (const disturbance of MOYASAR_DISTURBANCES)
        it(`resumes after ${disturbance} at ${at.source}, also within a second`, async () => {
          fake.disturb(at, disturbance);
          expect(await catchFailure(push)).to.include({ error_class: 'wait' });
          const { provider_entity_id } = await push();
          expect(findOpen()).to.deep.equal(['initiated 11910']);
          expect(invoices()[0]!.id).to.equal(provider_entity_id);
        });

    it('ends with one open invoice after any interruptions', async () => {
      const step = fc.constantFrom(/^GET invoices$/, /^POST invoices$/, /cancel$/);
      const interruption = fc.record({ step, disturbance: fc.constantFrom(...MOYASAR_DISTURBANCES) });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(interruption, { maxLength: 5 }), async (interruptions) => {
          const invoice_id = `inv_random_${++number}`;
          for (const { step: at, disturbance } of interruptions) {
            fake.disturb(at, disturbance);
            await push({ invoice_id }).catch((error: unknown) => expect(error).to.include({ error_class: 'wait' }));
          }
          fake.clearDisturbances();
          await push({ invoice_id });
          const there = invoices().filter(({ metadata }) => metadata?.['farthing_invoice_copy'] === invoice_id);
          expect(there.map(({ status }) => status).filter((status) => status !== 'canceled')).to.deep.equal([
            'initiated',
          ]);
        }),
        { numRuns: 60 },
      );
    }).timeout(60_000);

    it('ends with one open invoice after pushes at once that are repeated', async () => {
      for (let n = 0; n < 20; n++) {
        const invoice_id = `inv_race_${n}`;
        const run = () => push({ invoice_id });
        for (const result of await Promise.allSettled([run(), run(), run()]))
          if (result.status === 'rejected') expect(result.reason).to.include({ error_class: 'wait' });
        await run();
        const there = invoices().filter(({ metadata }) => metadata?.['farthing_invoice_copy'] === invoice_id);
        expect(there.filter(({ status }) => status === 'initiated')).to.have.length(1);
      }
    });

    it('finds the invoice behind many others', async () => {
      const { provider_entity_id } = await push();
      for (let n = 0; n < 90; n++)
        fake.book.createInvoice({ amount: 100, description: 'x', metadata: { farthing_invoice_copy: 'inv_1' } });
      for (const one of invoices()) if (one.id !== provider_entity_id) fake.book.cancelInvoice(one.id);
      expect(await push()).to.include({ provider_entity_id });
    });

    it('makes another invoice after the first was cancelled', async () => {
      fake.book.cancelInvoice((await push()).provider_entity_id);
      await push({ key: 'push:3' });
      expect(found()).to.deep.equal(['canceled 11910', 'initiated 11910']);
    });

    it('replaces an open invoice of another total, and keeps a paid one', async () => {
      await push({ lines: [line('50')], total: '50' });
      const { provider_entity_id } = await push();
      expect(found()).to.deep.equal(['canceled 5000', 'initiated 11910']);
      fake.book.payInvoice(provider_entity_id);
      const failure = await catchFailure(() => push({ lines: [line('50')], total: '50' }));
      expect(failure.message).to.contain('is 50 sar, but 119.1 sar at Moyasar');
      expect(found()).to.deep.equal(['canceled 5000', 'paid 11910']);
    });

    it('cancels the invoice if the total there is another, and names both', async () => {
      fake.book.surcharge = 500;
      const failure = await catchFailure(push);
      expect(failure.error_class).to.equal('person');
      expect(failure.message).to.contain('119.1 sar').and.to.contain('124.1 sar');
      expect(found()).to.deep.equal(['canceled 12410']);
    });
  });

  it('finds the invoice of a push whose answer was lost', async () => {
    const searched = { invoice_id: 'inv_1', provider_customer_id: 'cust_1', key_created_at: new Date() };
    expect(await account.findInvoice!(searched)).to.equal(null);
    fake.disturb(/^POST invoices$/, 'lost_answer');
    await catchFailure(push);
    expect((await account.findInvoice!(searched))!.provider_entity_id).to.equal(invoices()[0]!.id);
  });

  describe('voidInvoice', () => {
    const voidIt = (id: string) => account.voidInvoice!(id, 'void:1');

    it('cancels it, once, also after a lost answer or an unknown id', async () => {
      const { provider_entity_id: id } = await push();
      fake.disturb(/cancel$/, 'lost_answer');
      expect(await catchFailure(() => voidIt(id))).to.include({ error_class: 'wait' });
      await voidIt(id);
      await voidIt(fake.book.makeId());
      expect(found()).to.deep.equal(['canceled 11910']);
    });

    it('needs a person if it is paid', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id);
      expect((await catchFailure(() => voidIt(id))).message).to.contain('is paid at Moyasar');
    });
  });

  describe('pullInvoice', () => {
    const pull = async (id: string) => (await account.pullInvoice!(id))!;

    it('reads what was paid, refunded and taken back', async () => {
      const { provider_entity_id: id, url } = await push();
      const declined = fake.book.payInvoice(id, 'failed');
      expect(await pull(id)).to.deep.include({ url, invoice_status: 'open', total: '119.1', currency: 'sar' });
      const paid = fake.book.payInvoice(id);
      const read = async () =>
        (await pull(id)).payments.map((one) => [one.provider_payment_id, one.payment_status, one.refunded_amount]);
      expect((await pull(id)).invoice_status).to.equal('paid');
      expect(await read()).to.deep.equal([
        [declined.id, 'failed', '0'],
        [paid.id, 'succeeded', '0'],
      ]);
      fake.book.refundPayment(paid.id, { amount: 1_910 });
      expect((await read())[1]).to.deep.equal([paid.id, 'refunded', '19.1']);
      expect((await pull(id)).payments[1]).to.include({ amount: '119.1', currency: 'sar' });
    });

    it('reads a payment that was voided as refunded in full', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.voidPayment(fake.book.payInvoice(id).id);
      const { invoice_status, payments } = await pull(id);
      expect(invoice_status).to.equal('paid');
      expect(payments[0]).to.include({ payment_status: 'refunded', amount: '119.1', refunded_amount: '119.1' });
    });

    it('reads pending payments, and an ended page', async () => {
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id, 'initiated');
      fake.book.payInvoice(id, 'authorized');
      const { invoice_status, payments } = await pull(id);
      expect(invoice_status).to.equal('open');
      expect(payments.map((one) => [one.payment_status, one.is_for_customer ?? false])).to.deep.equal([
        ['pending', true],
        ['pending', false],
      ]);
      fake.book.expireInvoice(id);
      expect((await pull(id)).invoice_status).to.equal('void');
    });

    it('is nothing for an unknown id, and needs a person for an unknown state', async () => {
      expect(await account.pullInvoice!(fake.book.makeId())).to.equal(null);
      expect(await account.pullInvoice!('../payments')).to.equal(null);
      const { provider_entity_id: id } = await push();
      fake.book.payInvoice(id, 'undocumented');
      expect((await catchFailure(() => pull(id))).message).to.match(/has the status undocumented at Moyasar$/);
    });
  });

  it('finds the invoice of a payment', async () => {
    const { provider_entity_id: id } = await push();
    const payment = fake.book.payInvoice(id);
    const list = (provider_entity_id: string) =>
      account.listConcernedInvoices!({ kind: 'payment', provider_entity_id });
    expect(await list(payment.id)).to.deep.equal([id]);
    expect(await list(id)).to.deep.equal([]);
  });
});
