/** What the document of an invoice says of taxes that are in the amounts, and of who used what (docs/rules/documents.md). */
import { expect } from 'chai';
import { gatherInvoiceDocument, loadInvoicePdf } from '../../actions/invoicing/documents/invoice-pdf.ts';
import { buildInvoiceDocument } from '../../core/invoicing/document/document.ts';
import { InvoiceModel } from '../../storage/models/invoicing/invoice.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('printed invoices', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [usage('calls', '0.1', { display_name: 'Calls' })]);
    await world.post('/taxes/rates', {
      name: 'VAT',
      code: 'vat',
      percentage_value: '19',
      tax_behavior: 'inclusive',
    });
  });
  after(() => world.stop());

  const settings = async (value: object) => {
    const { status, body } = await world.api.request('PUT', '/settings/invoice_pdf_config', { body: { value } });
    return [status, body.details?.field ?? null];
  };
  const documentFor = async (customer: string) => {
    const { services, scope } = world.api;
    const { id } = (await world.invoices(customer))[0]!;
    const invoice = await InvoiceModel.fetch(scope, id, { database: services.postgres });
    return buildInvoiceDocument(await gatherInvoiceDocument(services, invoice, { now: world.now }));
  };

  it('say what of the amounts is tax, beside the total, and which groups used what', async () => {
    const tax_rate_overrides = [{ tax_rate_code: 'vat', currency: 'usd' }];
    await world.on('2026-01-01', () => world.subscribe('acme', 'Pro', { tax_rate_overrides }));
    const used = (n: number, region: string | null, source: string) => {
      const properties = { n, ...(region ? { region } : {}) };
      const timestamp = '2026-01-10T00:00:00Z';
      return { event_name: 'calls', external_customer_id: 'acme', timestamp, properties, source };
    };
    await world.send([used(700, 'eu', 'web'), used(333, 'us', 'web'), used(157, null, 'app')]);
    await world.waitForPipeline();
    await world.on('2026-02-01');
    await world.finalize();

    expect((await documentFor('acme')).rows[0]!.details.join()).to.not.contain('web');
    expect(await settings({ group_by: ['region'] })).to.deep.equal([400, 'value.group_by[0]']);
    expect(await settings({ group_by: ['source', 'properties.region'] })).to.deep.equal([200, null]);
    const { rows, sums } = await documentFor('acme');
    expect(rows[0]!.details.slice(2)).to.deep.equal([
      'web · eu: 700 units, 70.00',
      'web · us: 333 units, 33.30',
      'app · –: 157 units, 15.70',
    ]);
    expect(sums.map(({ label, value }) => `${label}: ${value.replaceAll('\u00a0', ' ')}`)).to.deep.equal([
      'Subtotal: $119.00 USD',
      'Total: $119.00 USD',
      'Includes VAT 19%: $19.00 USD',
      'Amount due: $119.00 USD',
    ]);
    const { id } = (await world.invoices('acme'))[0]!;
    const { services, scope } = world.api;
    const { bytes } = await loadInvoicePdf(services, scope, { id, force: true, fonts: null, now: world.now });
    expect(bytes.subarray(0, 5).toString()).to.equal('%PDF-');
    const answer = await fetch(`${world.api.url}/v1/invoices/${id}/pdf?force_generate=true`, {
      headers: { 'x-api-key': world.api.key },
    });
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).to.equal(true);
  });

  it('say the reverse charge by what the customer was when they became final', async () => {
    const reverse = 'Reverse charge: the recipient of the service owes the tax.';
    const exempt = (tax_exempt: string) =>
      world.api.request('PUT', `/customers/${world.id('customer globex')}`, { body: { tax_exempt } });
    const notes = async () => (await documentFor('globex')).notes;
    await world.on('2026-03-01', () => world.subscribe('globex', 'Pro'));
    await world.use('globex', 'calls', 10);
    await world.on('2026-04-01');
    expect(await notes()).to.deep.equal([]);
    await exempt('reverse');
    expect(await notes()).to.deep.equal([reverse]);
    await world.finalize();
    await exempt('none');
    expect(await notes()).to.deep.equal([reverse]);
    const { id } = (await world.invoices('globex'))[0]!;
    await world.post(`/invoices/${id}/void`, {});
    expect(await notes()).to.deep.equal([reverse]);
    await world.on('2026-04-02', () => world.use('globex', 'calls', 10));
    await world.on('2026-05-01');
    await world.finalize();
    await exempt('reverse');
    const [, later] = await world.invoices('globex');
    const { services, scope } = world.api;
    const second = await InvoiceModel.fetch(scope, later!.id, { database: services.postgres });
    expect(buildInvoiceDocument(await gatherInvoiceDocument(services, second, { now: world.now })).notes).to.deep.equal(
      [],
    );
  });
});
