/**
 * Requests of HubSpot's own library to the fake, which must behave as the public documentation says: invoices, payments,
 * associations, unique properties and refusals. No other fake of HubSpot exists to compare with.
 */
import { Client } from '@hubspot/api-client';
import { expect } from 'chai';
import { HubSpotFake } from '../../support/providers/hubspot-fake.ts';

type Association = {
  to: { id: string };
  types: { associationCategory: 'HUBSPOT_DEFINED'; associationTypeId: number }[];
};

const associate = (id: string, associationTypeId: number) =>
  [{ to: { id }, types: [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId }] }] as Association[] as never;

describe('integrations/hubspot/contract', () => {
  let fake: HubSpotFake;
  let crm: Client['crm'];

  beforeEach(async () => {
    fake = await new HubSpotFake().start();
    ({ crm } = new Client({ accessToken: fake.access_token, basePath: fake.url.origin }));
  });
  afterEach(() => fake.stop());

  const refusalOf = async (request: Promise<unknown>) => {
    try {
      await request;
    } catch (error) {
      const { code, body } = error as { code: number; body: { category: string } };
      return `${code} ${body.category}`;
    }
    throw new Error('it was accepted');
  };
  const { invoices, objects } = {
    invoices: () => crm.commerce.invoices.basicApi,
    objects: () => crm.objects.basicApi,
  };
  const newContact = async () => (await crm.contacts.basicApi.create({ properties: { lastname: 'Acme' } })).id;
  const newDraft = async () =>
    (await invoices().create({ properties: { hs_currency: 'USD' }, associations: associate(await newContact(), 177) }))
      .id;
  const read = async (id: string) =>
    (await invoices().getById(id, ['hs_invoice_status', 'hs_amount_billed', 'hs_balance_due'])).properties;
  const addLine = (id: string, price: string) =>
    crm.lineItems.basicApi.create({
      properties: { name: 'Seats', quantity: '2', price },
      associations: associate(id, 410),
    });
  const open = (id: string) => invoices().update(id, { properties: { hs_invoice_status: 'open' } });
  const pay = (id: string, hs_initial_amount: string) =>
    objects().create('commerce_payments', {
      properties: { hs_initial_amount, hs_initiated_date: '2026-11-05T10:00:00Z', hs_latest_status: 'succeeded' },
      associations: associate(id, 542),
    });

  it('the account names its id', async () => {
    const client = new Client({ accessToken: fake.access_token, basePath: fake.url.origin });
    const answer = await client.apiRequest({ path: '/account-info/v3/details' });
    expect(await answer.json()).to.include({ portalId: 4711, companyCurrency: 'USD' });
  });

  it('an invoice goes from the draft to its payments', async () => {
    const id = await newDraft();
    await addLine(id, '50.25');
    expect(await read(id)).to.include({ hs_invoice_status: 'draft', hs_amount_billed: '100.5' });
    await open(id);
    await pay(id, '40');
    expect(await read(id)).to.include({ hs_invoice_status: 'open', hs_balance_due: '60.5' });
    await pay(id, '60.5');
    expect(await read(id)).to.include({ hs_invoice_status: 'paid', hs_balance_due: '0' });
    const { results } = await crm.associations.v4.basicApi.getPage('invoices', id, 'commerce_payments');
    expect(results).to.have.length(2);
  });

  it('a discount lowers the total', async () => {
    const id = await newDraft();
    await addLine(id, '50');
    const properties = { hs_type: 'FIXED', hs_value: '20.5' };
    await objects().create('0-84', { properties, associations: associate(id, 412) });
    expect(await read(id)).to.include({ hs_amount_billed: '79.5' });
  });

  it('an invoice needs a contact and a line before it is opened', async () => {
    expect(await refusalOf(open(await newDraft()))).to.equal('400 VALIDATION_ERROR');
    const { id } = await invoices().create({ properties: { hs_currency: 'USD' }, associations: [] });
    await addLine(id, '5');
    expect(await refusalOf(open(id))).to.equal('400 VALIDATION_ERROR');
  });

  it('an open invoice can be voided, a paid one and a draft cannot; a draft can be deleted', async () => {
    const end = (id: string) => invoices().update(id, { properties: { hs_invoice_status: 'voided' } });
    const [first, second, draft] = [await newDraft(), await newDraft(), await newDraft()];
    for (const id of [first, second]) {
      await addLine(id, '5');
      await open(id);
    }
    await end(first);
    expect(await read(first)).to.include({ hs_invoice_status: 'voided' });
    await pay(second, '10');
    expect(await refusalOf(end(second))).to.equal('400 VALIDATION_ERROR');
    expect(await refusalOf(end(draft))).to.equal('400 VALIDATION_ERROR');
    await invoices().archive(draft);
    expect(await refusalOf(read(draft))).to.equal('404 OBJECT_NOT_FOUND');
    expect(await refusalOf(invoices().archive(first))).to.equal('400 VALIDATION_ERROR');
  });

  it('a unique property finds its record and refuses a second one', async () => {
    const property = { name: 'our_id', label: 'Our id', groupName: 'ours', type: 'string', fieldType: 'text' };
    const create = () => invoices().create({ properties: { hs_currency: 'USD', our_id: 'inv_1' }, associations: [] });
    const find = (value: string) => invoices().getById(value, [], undefined, undefined, false, 'our_id');
    expect(await refusalOf(create())).to.equal('400 VALIDATION_ERROR');
    expect(await refusalOf(find('inv_1'))).to.equal('400 VALIDATION_ERROR');
    const unique = { ...property, hasUniqueValue: true } as never;
    expect(await refusalOf(crm.properties.coreApi.create('0-53', unique))).to.equal('400 VALIDATION_ERROR');
    await crm.properties.groupsApi.create('0-53', { name: 'ours', label: 'Ours' });
    await crm.properties.coreApi.create('0-53', unique);
    expect(await refusalOf(crm.properties.coreApi.create('0-53', unique))).to.equal('409 CONFLICT');
    const { id } = await create();
    expect((await find('inv_1')).id).to.equal(id);
    expect(await refusalOf(create())).to.equal('400 VALIDATION_ERROR');
    expect(await refusalOf(find('inv_2'))).to.equal('404 OBJECT_NOT_FOUND');
    await invoices().update(id, { properties: { our_id: '' } });
    await create();
  });

  it('a company has its contact, and a deal both, a stage of its pipeline and a currency of the account', async () => {
    const contact_id = await newContact();
    const properties = { name: 'Acme', zip: '3000' };
    const company = await crm.companies.basicApi.create({ properties, associations: associate(contact_id, 280) });
    const terms = { dealname: 'Pro', pipeline: 'default', dealstage: 'closedwon', amount: '12.5' };
    const both = [...associate(contact_id, 3), ...associate(company.id, 341)] as never;
    const create = (more: Record<string, string>) =>
      crm.deals.basicApi.create({ properties: { ...terms, ...more }, associations: both });
    const { id } = await create({ deal_currency_code: 'EUR', closedate: '2026-11-05T10:00:00Z' });
    for (const [type, to_id] of [
      ['contacts', contact_id],
      ['companies', company.id],
    ] as const) {
      const { results } = await crm.associations.v4.basicApi.getPage('deals', id, type);
      expect(results.map(({ toObjectId }) => String(toObjectId))).to.deep.equal([to_id]);
    }
    await crm.deals.basicApi.update(id, { properties: { dealstage: 'closedlost' } });
    expect((await crm.deals.basicApi.getById(id, ['dealstage'])).properties).to.include({ dealstage: 'closedlost' });
    expect(await refusalOf(create({ dealstage: 'won' }))).to.equal('400 VALIDATION_ERROR');
    expect(await refusalOf(create({ deal_currency_code: 'XYZ' }))).to.equal('400 VALIDATION_ERROR');
  });

  it('a second contact with an e-mail is refused', async () => {
    const create = () => crm.contacts.basicApi.create({ properties: { email: 'a@acme.example' }, associations: [] });
    await create();
    expect(await refusalOf(create())).to.equal('409 CONFLICT');
  });

  it('unknown, computed and wrong properties are refused, and other currencies', async () => {
    const create = (properties: Record<string, string>) => invoices().create({ properties, associations: [] });
    for (const properties of [
      {},
      { hs_currency: 'CHF' },
      { hs_currency: 'USD', hs_amount_billed: '5' },
      { hs_currency: 'USD', hs_due_date: 'soon' },
      { hs_currency: 'USD', hs_unknown: 'x' },
      { hs_currency: 'USD', hs_invoice_status: 'sent' },
    ])
      expect(await refusalOf(create(properties as Record<string, string>))).to.equal('400 VALIDATION_ERROR');
    expect(await refusalOf(pay(await newDraft(), '1,5'))).to.equal('400 VALIDATION_ERROR');
    const wrong = { properties: { hs_currency: 'USD' }, associations: associate(await newContact(), 410) };
    expect(await refusalOf(invoices().create(wrong))).to.equal('400 VALIDATION_ERROR');
  });

  it('a batch has at most a hundred records', async () => {
    const inputs = Array.from({ length: 101 }, () => ({ properties: { name: 'x' }, associations: [] }));
    expect(await refusalOf(crm.lineItems.batchApi.create({ inputs }))).to.equal('400 VALIDATION_ERROR');
    const { results } = await crm.lineItems.batchApi.create({ inputs: inputs.slice(1) });
    expect(results).to.have.length(100);
    await crm.lineItems.batchApi.archive({ inputs: results.map(({ id }) => ({ id })) });
    expect(fake.crm.list('line_items')).to.deep.equal([]);
  });

  it('a wrong token is refused', async () => {
    fake.is_revoked = true;
    expect(await refusalOf(newContact())).to.equal('401 INVALID_AUTHENTICATION');
  });
});
