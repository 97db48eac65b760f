/** docs/integrations/moyasar.md and nomod.md: pages and charges, also of a provider without customers, through the API. */
import { expect } from 'chai';
import { processDuePayments } from '../../../actions/lifecycle/payments/due-payments.ts';
import { ConnectedAccount } from '../../support/providers/connected-account.ts';
import { MoyasarDouble } from '../../support/providers/moyasar-double.ts';
import { NomodDouble } from '../../support/providers/nomod-double.ts';

const DAY_S = 86_400;

describe('pages and charges of payment gateways', () => {
  const moyasar = new MoyasarDouble();
  const nomod = new NomodDouble();

  const request = async (account: ConnectedAccount, invoice_id: string, more: object) => {
    const { provider_type: payment_gateway, currency } = account.provider;
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id };
    return account.request('POST', '/payments', { ...destination, payment_gateway, amount: '100', currency, ...more });
  };
  const PAGE = { payment_method_type: 'PAYMENT_LINK', success_url: 'https://acme.example/thanks' };

  for (const { double, payPage } of [
    { double: moyasar, payPage: (id: string) => moyasar.fake.book.payInvoice(id).id },
    { double: nomod, payPage: (id: string) => nomod.fake.book.payLink(id).id },
  ])
    describe(double.provider_type, () => {
      let account: ConnectedAccount;
      before(async () => {
        account = await ConnectedAccount.open(double);
      });
      after(() => account.stop());

      it('a page is paid, and its money is refunded', async () => {
        const invoice_id = await account.newInvoice();
        const { id, payment_url, gateway_payment_id } = await request(account, invoice_id, PAGE);
        expect(payment_url).to.match(/^https:/);
        const paid_id = payPage(gateway_payment_id!);
        await account.deliverAll();
        await account.read();
        account.passSeconds(DAY_S);
        await processDuePayments(account.api.services, { now: account.now });
        expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
        expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${paid_id}`]);
        await account.request('POST', `/payments/${id}/refund`, { amount: '40' });
        expect(double.sumRefunds(paid_id)).to.equal('40');
      });

      it('a page that is void here is closed there', async () => {
        const invoice_id = await account.newInvoice();
        const { id, gateway_payment_id } = await request(account, invoice_id, PAGE);
        await account.request('PUT', `/payments/${id}`, { payment_status: 'VOIDED' });
        await processDuePayments(account.api.services, { now: account.now });
        expect(() => payPage(gateway_payment_id!)).to.throw(/^it is (?:canceled|disabled)$/);
      });
    });

  describe('moyasar', () => {
    let account: ConnectedAccount;
    before(async () => {
      account = await ConnectedAccount.open(moyasar);
    });
    after(() => account.stop());

    it('a saved token is charged, and a declined one fails', async () => {
      for (const [behaviour, shown] of [
        ['pays', 'SUCCEEDED 100'],
        ['declines', 'FAILED 0'],
      ] as const) {
        const customer_id = await account.newCustomer();
        const token = moyasar.fake.book.addToken(behaviour);
        const method = { payment_gateway: 'moyasar', gateway_payment_method_id: token };
        await account.request('POST', `/payments/customers/${customer_id}/methods`, method);
        const invoice_id = await account.newInvoice(customer_id);
        await request(account, invoice_id, { payment_method_type: 'CARD', payment_method_id: token });
        expect(await account.showPaid(invoice_id)).to.equal(shown);
      }
    });

    it('a setup of a card is refused, because Moyasar has no page for it', async () => {
      const path = `/payments/customers/${await account.newCustomer()}/setup/intent` as const;
      const { status, text } = await account.api.request('POST', path, { body: { provider: 'moyasar' } });
      expect([status, text.includes('moyasar saves no payment methods on request')], text).to.deep.equal([400, true]);
    });
  });
});
