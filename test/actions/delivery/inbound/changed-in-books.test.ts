/** docs/integrations/README.md, "Reading an invoice": records that a bookkeeper copies or changes in QuickBooks. */
import { expect } from 'chai';
import { findInvoiceFaults } from '../../../../storage/audit/invoices.ts';
import { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { QuickBooksDouble } from '../../../support/providers/quickbooks-double.ts';

describe('records that are changed in QuickBooks', () => {
  const there = new QuickBooksDouble();
  const { books } = there.fake;
  let account: ConnectedAccount;

  before(async () => {
    account = await ConnectedAccount.open(there);
  });
  afterEach(async () => {
    expect(await findInvoiceFaults(account.api.services.postgres, { invoices: null, limit: 5 })).to.deep.equal([]);
  });
  after(() => account.stop());

  /** Reads the copy as if it were due. */
  const read = async (invoice_id: string) => {
    const body = { entity_type: 'invoice', entity_id: invoice_id, method: 'pull' };
    await account.request('POST', '/integrations/sync', body);
    account.passSeconds(1);
    expect((await account.read()).ended).to.equal('done');
    return (await account.findMapping(invoice_id)).attention_reason;
  };
  const newPaid = async (amount: string) => {
    const { invoice_id, copy_id } = await account.newPushed();
    const payment_id = await account.pay(invoice_id, amount);
    await account.push();
    const { provider_entity_id } = await account.findMapping(payment_id);
    return { invoice_id, copy_id, payment_id, sent: books.read('Payment', provider_entity_id) };
  };

  for (const [name, isSame] of [
    ['for the same invoice', true],
    ['for another invoice', false],
  ] as const)
    it(`a copy of a sent payment ${name} is money of its own`, async () => {
      const { invoice_id, copy_id, sent } = await newPaid('40');
      const target = isSame ? { invoice_id, copy_id } : await account.newPushed();
      const Line = [{ Amount: '40', LinkedTxn: [{ TxnId: target.copy_id, TxnType: 'Invoice' }] }];
      const { CustomerRef, PrivateNote } = sent;
      const copy = books.create('Payment', { CustomerRef, PrivateNote, TotalAmt: '40', Line });
      for (let times = 0; times < 2; times++) expect(await read(target.invoice_id)).to.equal(null);
      expect(await account.listPayments(target.invoice_id)).to.include(`40 ${copy.Id}`);
      expect(await account.showPaid(target.invoice_id)).to.equal(`PENDING ${isSame ? '80' : '40'}`);
    });

  it('a payment there that was voided here and archived by an earlier version is not recorded again, and later ones are', async () => {
    const { invoice_id, copy_id } = await account.newPushed();
    const { CustomerRef } = books.read('Invoice', copy_id);
    const payThere = (amount: string) => {
      const Line = [{ Amount: amount, LinkedTxn: [{ TxnId: copy_id, TxnType: 'Invoice' }] }];
      return books.create('Payment', { CustomerRef, TotalAmt: amount, Line });
    };
    payThere('20');
    await read(invoice_id);
    const { body } = await account.api.request<{ items: [{ id: string }] }>(
      'GET',
      `/payments?destination_id=${invoice_id}`,
    );
    const path = `/payments/${body.items[0].id}` as const;
    await account.request('PUT', path, { payment_status: 'VOIDED' });
    await account.api.services.postgres('payments').where({ id: body.items[0].id }).update({ status: 'archived' });
    const later = payThere('30');
    await read(invoice_id);
    expect(await account.listPayments(invoice_id)).to.deep.equal([`30 ${later.Id}`]);
    expect(await account.showPaid(invoice_id)).to.equal('PENDING 30');
  });

  it('a sent payment that a bookkeeper also applies to another invoice pays that one with its part', async () => {
    const { invoice_id, sent } = await newPaid('40');
    const other = await account.newPushed();
    const invoice = books.read('Invoice', other.copy_id);
    const link = { TxnId: other.copy_id, TxnType: 'Invoice' };
    (sent['Line'] as object[]).push({ Amount: '25', LinkedTxn: [link] });
    Object.assign(invoice, { Balance: '75', LinkedTxn: [{ TxnId: sent.Id, TxnType: 'Payment' }] });
    expect([await read(invoice_id), await read(other.invoice_id)]).to.deep.equal([null, null]);
    expect(await account.showPaid(invoice_id)).to.equal('PENDING 40');
    expect(await account.showPaid(other.invoice_id)).to.equal('PENDING 25');
  });

  it('a credit memo that was sent and is deleted there needs attention, an hour after it was sent', async () => {
    const { invoice_id } = await account.newPushed();
    const note_id = await account.credit(invoice_id, '30');
    await account.push();
    const { provider_entity_id } = await account.findMapping(note_id);
    account.passSeconds(3_600);
    expect(await read(invoice_id)).to.equal(null);
    const memo = books.read('CreditMemo', provider_entity_id);
    const [{ TxnId }] = memo['LinkedTxn'] as [{ TxnId: string }];
    books.end('Payment', 'delete', books.read('Payment', TxnId));
    books.end('CreditMemo', 'delete', memo);
    expect(await read(invoice_id)).to.equal(
      `credit note ${note_id} of 30 usd is 0 at quickbooks (${provider_entity_id})`,
    );
  });
});
