/**
 * docs/rules/taxes.md, "Merchant of record": invoices that go to one have no tax of their own, and its tax is stored with
 * the payment. For every provider that collects tax.
 */
import { expect } from 'chai';
import { listCapable } from '../../../../integrations/find-capability.ts';
import { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { PROVIDER_DOUBLES } from '../../../support/providers/doubles.ts';
import { skipPace } from '../../../support/providers/skip-pace.ts';

const MERCHANTS = Object.entries(listCapable('account')).filter(([, { collects_tax }]) => collects_tax);

for (const [name] of MERCHANTS)
  describe(`${name}: merchant of record`, () => {
    const there = PROVIDER_DOUBLES[name]!();
    let account: ConnectedAccount;
    let taxed_id: string;
    let stopSkipping = () => {};

    const showTotals = async (invoice_id: string) => {
      const { subtotal, total_tax, total } = await account.request('GET', `/invoices/${invoice_id}`);
      return [subtotal, total_tax, total];
    };
    const openPage = async (invoice_id: string) => {
      const destination = { destination_type: 'INVOICE', destination_id: invoice_id, amount: '100', currency: 'usd' };
      const terms = { payment_method_type: 'PAYMENT_LINK', payment_gateway: name };
      return await account.request('POST', '/payments', { ...destination, ...terms });
    };

    before(async () => {
      stopSkipping = skipPace(there.fake);
      account = await ConnectedAccount.start(there);
      const rate = { name: 'VAT', code: 'vat', percentage_value: '19' };
      await account.request('POST', '/taxes/rates', rate);
      const { tenant_id } = account.api.scope;
      const association = { tax_rate_code: 'vat', entity_type: 'tenant', entity_id: tenant_id, auto_apply: true };
      await account.request('POST', '/taxes/associations', association);
      taxed_id = await account.newInvoice();
      await account.connect();
    });
    after(async () => {
      stopSkipping();
      await account.stop();
    });

    it('an invoice has its own tax before the connection, and none afterwards', async () => {
      expect(await showTotals(taxed_id)).to.deep.equal(['100', '19', '119']);
      const { invoice_id } = await account.newPushed();
      expect(await showTotals(invoice_id)).to.deep.equal(['100', '0', '100']);
      expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
    });

    it('an invoice with its own tax is not sent, and gets no page there', async () => {
      const why = `invoice ${taxed_id} has taxes of 19, and ${name} would add its own: void it, and create it again`;
      const body = { entity_type: 'invoice', entity_id: taxed_id };
      const answer = await account.api.request('POST', '/integrations/sync', { body });
      expect([answer.status, answer.body.code, answer.body.message]).to.deep.equal([
        ...[400, 'invalid_operation', `${name}: ${why}`],
      ]);
      expect(account.showCopies(taxed_id)).to.deep.equal([]);
      expect(await openPage(taxed_id)).to.include({ payment_status: 'FAILED', error_message: why });
    });

    it('its tax is stored with the payment of an invoice, and of a page', async () => {
      const { invoice_id, copy_id } = await account.newPushed();
      there.payCopy(copy_id);
      const page = await openPage(await account.newInvoice());
      there.payCopy(page['gateway_payment_id']!);
      await account.deliverAll();
      expect((await account.read()).ended).to.equal('done');
      const { items } = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
      for (const { amount, gateway_metadata } of [items[0]!, await account.request('GET', `/payments/${page['id']}`)])
        expect([amount, gateway_metadata]).to.deep.equal(['100', { provider_tax: '19' }]);
      expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    });

    it('its refund is a net amount', async () => {
      const { invoice_id, copy_id } = await account.newPushed();
      there.payCopy(copy_id);
      await account.deliverAll();
      await account.read();
      const { items } = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body;
      await account.request('POST', `/payments/${items[0]!.id}/refund`, { amount: '40' });
      await account.deliverAll();
      await account.read();
      const { refunded_amount, error_message } = await account.request('GET', `/payments/${items[0]!.id}`);
      expect([refunded_amount, error_message]).to.deep.equal(['40', null]);
      expect((await account.findMapping(invoice_id)).attention_reason).to.equal(null);
    });

    it('an invoice in a currency that it does not take has its own tax', async () => {
      const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
      const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'kwd', line_items };
      const owner = { customer_id: await account.newCustomer(), invoice_status: 'FINALIZED' };
      const { id } = await account.request('POST', '/invoices', { ...owner, ...amounts });
      expect(await showTotals(id!)).to.deep.equal(['100', '19', '119']);
    });

    it('an invoice has its own tax again if the connection sends none, or is archived', async () => {
      const path = `/connections/${account.connection_id}` as const;
      const invoice = { inbound: true, outbound: false };
      await account.request('PUT', path, { sync_config: { invoice } });
      expect(await showTotals(await account.newInvoice())).to.deep.equal(['100', '19', '119']);
      await account.request('PUT', path, { sync_config: null });
      expect(await showTotals(await account.newInvoice())).to.deep.equal(['100', '0', '100']);
      await account.request('DELETE', path);
      expect(await showTotals(await account.newInvoice())).to.deep.equal(['100', '19', '119']);
    });
  });
