/**
 * Requests of Xero's own library to the fake: it reads what the fake answers and is refused as this service is. If Xero's OpenAPI document is
 * there, the check of calls against it is itself tested with wrong calls.
 */
import { expect } from 'chai';
import { CreditNote, CurrencyCode, Invoice, LineAmountTypes, XeroClient } from 'xero-node';
import { xero } from '../../../integrations/xero/provider.ts';
import { findXeroDocument } from '../../support/providers/xero-document.ts';
import { XeroFake } from '../../support/providers/xero-fake.ts';

describe('integrations/xero/contract', () => {
  let fake: XeroFake;
  let api: XeroClient['accountingApi'];
  let tenant_id: string;

  beforeEach(async () => {
    fake = await new XeroFake().start();
    ({ tenant_id } = fake.books);
    api = new XeroClient().accountingApi;
    api.basePath = `${fake.url.origin}/api.xro/2.0`;
    api.accessToken = fake.access_token;
  });
  afterEach(async () => {
    await fake.stop();
    expect(fake.faults).to.deep.equal([]);
  });

  const readStatus = async (request: Promise<unknown>): Promise<number> => {
    try {
      await request;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      return JSON.parse(text).response.statusCode;
    }
    throw new Error('it was accepted');
  };
  const terms = (contactID: string) => ({
    contact: { contactID },
    currencyCode: CurrencyCode.USD,
    lineAmountTypes: LineAmountTypes.NoTax,
    lineItems: [{ description: 'Seats', quantity: 2, unitAmount: 12.345, accountCode: '200' }],
  });

  it('an invoice goes from the draft to its payments and credits', async () => {
    const { body: made } = await api.createContacts(tenant_id, { contacts: [{ name: 'Acme', contactNumber: 'c' }] });
    const contactID = made.contacts![0]!.contactID!;
    const draft = { ...terms(contactID), type: Invoice.TypeEnum.ACCREC, dueDate: '2026-12-01' };
    const { body } = await api.createInvoices(tenant_id, { invoices: [draft] }, undefined, 4);
    const [{ invoiceID, total, status }] = body.invoices as [Invoice];
    expect([total, status]).to.deep.equal([24.69, 'DRAFT']);
    await api.updateInvoice(tenant_id, invoiceID!, { invoices: [{ status: Invoice.StatusEnum.AUTHORISED }] });
    const payment = { invoice: { invoiceID: invoiceID! }, account: { code: '090' }, amount: 4.69, date: '2026-11-29' };
    const { body: paid } = await api.createPayments(tenant_id, { payments: [payment] });
    const note = {
      ...terms(contactID),
      type: CreditNote.TypeEnum.ACCRECCREDIT,
      status: CreditNote.StatusEnum.AUTHORISED,
    };
    const { body: credited } = await api.createCreditNotes(tenant_id, { creditNotes: [note] });
    const creditNoteID = credited.creditNotes![0]!.creditNoteID!;
    const allocation = { invoice: { invoiceID: invoiceID! }, amount: 10, date: '2026-11-29' };
    await api.createCreditNoteAllocation(tenant_id, creditNoteID, { allocations: [allocation] });
    const read = async () => (await api.getInvoice(tenant_id, invoiceID!)).body.invoices![0]!;
    expect(await read()).to.include({ amountDue: 10, amountPaid: 4.69, amountCredited: 10 });
    expect((await read()).creditNotes![0]).to.include({ creditNoteID, appliedAmount: 10 });

    const settings = { ...fake.secrets, access_token: fake.access_token };
    const account = await xero.account!.open(settings, { address: fake.url });
    const pulled = (await account.pullInvoice!(invoiceID!))!;
    expect(pulled).to.deep.include({
      invoice_status: 'open',
      total: '24.69',
      credits: [{ provider_credit_id: creditNoteID, amount: '10' }],
    });
    expect(pulled.payments[0]).to.include({ amount: '4.69', paid_at: '2026-11-29T00:00:00.000Z' });

    await api.deletePayment(tenant_id, paid.payments![0]!.paymentID!, { status: 'DELETED' });
    expect((await read()).amountDue).to.equal(14.69);
    const { body: notes } = await api.getCreditNotes(tenant_id);
    const { allocationID } = notes.creditNotes![0]!.allocations![0]!;
    await api.deleteCreditNoteAllocations(tenant_id, creditNoteID, allocationID!);
    expect((await read()).amountDue).to.equal(24.69);
  });

  it('the library is refused as this service is', async () => {
    expect(await readStatus(api.getInvoice(tenant_id, '7d1c1b0e-8a2f-4c3d-9e4f-5a6b7c8d9e0f'))).to.equal(404);
    expect(await readStatus(api.createContacts(tenant_id, { contacts: [{ name: '' }] }))).to.equal(400);
    expect(await readStatus(api.getOrganisations('another'))).to.equal(403);
    api.accessToken = 'expired';
    expect(await readStatus(api.getOrganisations(tenant_id))).to.equal(401);
  });

  const document = findXeroDocument();
  if (document !== null)
    it('calls that the OpenAPI document does not allow are faults', () => {
      const call = {
        ...{
          method: 'PUT',
          path: '/Invoices',
          search: new URLSearchParams(),
          body: { Invoices: [{ Status: 'DRAFT' }] },
        },
        headers: { 'xero-tenant-id': tenant_id },
      };
      const list = (more: object, answer: unknown = { Invoices: [] }) =>
        document.listFaults({ ...call, ...more }, { status: 200, body: answer });
      expect(list({})).to.deep.equal([]);
      for (const more of [
        { headers: {} },
        { search: new URLSearchParams({ unknown: '1' }) },
        { search: new URLSearchParams({ unitdp: 'four' }) },
        { headers: { ...call.headers, 'idempotency-key': 'k'.repeat(129) } },
        { path: '/Invoice' },
        { path: '/Payments/7', method: 'GET', body: undefined },
        { body: undefined },
        { body: { Invoices: [{ Status: 'OPEN' }] } },
        { body: { Invoices: [{ Unknown: 1 }] } },
        { body: { Invoices: [{ Total: 1 }] } },
        { body: { Invoices: [{ LineItems: [{ UnitAmount: '1' }] }] } },
      ])
        expect(list(more), JSON.stringify(more)).to.have.length(1);
      expect(list({}, { Invoices: [], Id: '1' })).to.have.length(1);
      expect(list({}, { Invoices: [{ Total: '1' }] })).to.have.length(1);
    });
});
