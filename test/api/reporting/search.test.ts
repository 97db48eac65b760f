/** GET /search over all kinds of records (docs/rules/records.md, "Search"). */
import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import { fixed, startWorld, type World } from '../../support/world.ts';

describe('search', () => {
  let world: World;
  let invoice: { id: string; invoice_number?: string | null };
  before(async () => {
    world = await startWorld({ now: '2026-01-10T00:00:00Z' });
    const customers = [
      { external_id: 'acme', name: 'Acme 100% Ltd', email: 'Billing@acme.example' },
      { external_id: 'acme-north', name: 'North', email: 'north@acme.example' },
      { external_id: 'x_1', name: 'Big acme_group', email: '' },
      { external_id: 'xy1', name: 'Other', email: 'o@other.example' },
    ];
    for (const body of customers) {
      const { status, text } = await world.api.request('POST', '/customers', { body });
      expect(status, text).to.equal(201);
    }
    await world.meter('acme_calls');
    await world.plan('Acme Special', [fixed('10')]);
    await world.post('/subscriptions', {
      external_customer_id: 'acme',
      plan_id: world.id('plan Acme Special'),
      ...{ currency: 'usd', billing_period: 'MONTHLY', billing_period_count: 1, lookup_key: 'acme-contract' },
    });
    const sums = { subtotal: '5', total: '5', amount_due: '5', currency: 'usd' };
    const customer = await world.get('/customers/external/acme');
    invoice = await world.post('/invoices', { customer_id: customer.id, ...sums, invoice_status: 'FINALIZED' });
    await world.send([
      {
        event_id: 'Event 7',
        event_name: 'acme_calls',
        external_customer_id: 'acme',
        timestamp: '2026-01-09T00:00:00Z',
        properties: { n: 1 },
      },
    ]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const search = async (q: string, rest = '', options = {}) => {
    const path = `/search?q=${encodeURIComponent(q)}${rest}` as `/search?${string}`;
    const { status, body, text } = await world.api.request('GET', path, options);
    expect(status, text).to.equal(200);
    return body.items;
  };
  const show = async (q: string, rest = '', options = {}) =>
    (await search(q, rest, options)).map(({ kind, title, matched }) => `${kind} ${title} by ${matched}`);

  it('equal fields first, then beginnings, then names that contain the text', async () => {
    expect(await show('ACME')).to.deep.equal([
      'customer Acme 100% Ltd by external_id',
      'customer North by external_id',
      'subscription Acme Special by lookup_key',
      'plan Acme Special by lookup_key',
      'meter acme_calls by name',
      'customer Big acme_group by name',
    ]);
    expect(await show('acme', '&limit=2')).to.have.length(2);
    expect(await show('acme', '&kinds=PLAN,meter')).to.deep.equal([
      'plan Acme Special by lookup_key',
      'meter acme_calls by name',
    ]);
  });

  it('emails, external ids and numbers, whole and by their beginning, in any case', async () => {
    expect(await show('billing@ACME.example')).to.deep.equal(['customer Acme 100% Ltd by email']);
    expect(await show('NORTH@')).to.deep.equal(['customer North by email']);
    const number = invoice.invoice_number!;
    for (const text of [number, number.toLowerCase(), number.slice(0, -1)]) {
      const [found] = await search(text, '&kinds=invoice');
      const customer_id = (await world.get('/customers/external/acme')).id;
      expect(found, text).to.deep.equal({
        ...{ kind: 'invoice', id: invoice.id, title: number, subtitle: 'Acme 100% Ltd' },
        ...{ status: 'FINALIZED', matched: 'number', customer_id },
      });
    }
  });

  it('% and _ are no wildcards', async () => {
    expect(await show('100% l')).to.deep.equal(['customer Acme 100% Ltd by name']);
    expect(await show('10_%')).to.deep.equal([]);
    expect(await show('x_1')).to.deep.equal(['customer Big acme_group by external_id']);
    expect(await show('e_gro')).to.deep.equal(['customer Big acme_group by name']);
    expect(await show('eXgro')).to.deep.equal([]);
    expect(await show('\\')).to.deep.equal([]);
  });

  it('ids, whole or by their beginning; a whole id also of an archived record', async () => {
    for (const id of [invoice.id, invoice.id.toLowerCase(), invoice.id.slice(0, 20)])
      expect((await search(id)).map((one) => [one.id, one.matched])).to.deep.equal([[invoice.id, 'id']]);
    for (const path of ['/customers', '/subscriptions', '/plans', '/meters', '/prices'] as const) {
      const { items } = await world.get<{ items: { id: string }[] }>(`${path}?limit=1`);
      expect(
        (await search(items[0]!.id)).map(({ id }) => id),
        path,
      ).to.deep.equal([items[0]!.id]);
    }
    const { id } = await world.post('/customers', { external_id: 'gone', name: 'Gone' });
    await world.api.request('DELETE', `/customers/${id}`);
    expect(await search(id)).to.have.length(1);
    expect((await search(id))[0]).to.include({ status: 'archived' });
    expect(await search('gone')).to.deep.equal([]);
    expect(await search(id.slice(0, -1))).to.deep.equal([]);
    expect(await search(newId('customer'))).to.deep.equal([]);
  });

  it('events by their whole id', async () => {
    const customer_id = (await world.get('/customers/external/acme')).id;
    expect(await search('Event 7')).to.deep.equal([
      {
        ...{ kind: 'event', id: 'Event 7', title: 'acme_calls', subtitle: 'acme', status: null },
        ...{ matched: 'event_id', customer_id },
      },
    ]);
    expect(await search('event 7')).to.deep.equal([]);
    expect(await search('Event')).to.deep.equal([]);
  });

  it('catalogue, credit notes, wallets and payments', async () => {
    const customer_id = (await world.get('/customers/external/xy1')).id;
    const made = [
      await world.post('/features', { name: 'Zebra feature', lookup_key: 'zf', type: 'boolean' }),
      await world.post('/addons', { name: 'Zebra addon', lookup_key: 'za', type: 'onetime' }),
      await world.post('/coupons', {
        name: 'Zebra coupon',
        type: 'fixed',
        amount_off: '5',
        currency: 'usd',
        cadence: 'once',
      }),
    ];
    const found = await search('zebra');
    expect(found.map(({ id }) => id)).to.have.members(made.map(({ id }) => id));
    expect(found.map(({ kind }) => kind)).to.deep.equal(['feature', 'addon', 'coupon']);
    const wallet = await world.post('/wallets', { customer_id, currency: 'usd', name: 'Prepaid' });
    expect(await search(wallet.id)).to.deep.equal([
      {
        ...{ kind: 'wallet', id: wallet.id, title: 'Prepaid', subtitle: 'Other' },
        ...{ status: 'active', matched: 'id', customer_id },
      },
    ]);
  });

  it('400 names the parameter', async () => {
    const wrong = [
      ['', 'q'],
      ['q=', 'q'],
      ['q=%20%20', 'q'],
      [`q=${'x'.repeat(201)}`, 'q'],
      ['q=a&kinds=user', 'kinds[0]'],
      ['q=a&limit=0', 'limit'],
      ['q=a&limit=51', 'limit'],
    ] as const;
    for (const [query, field] of wrong) {
      const { status, body } = await world.api.request('GET', `/search?${query}`);
      expect([status, body.details?.field], query).to.deep.equal([400, field]);
    }
    expect(await search('x'.repeat(200))).to.deep.equal([]);
  });

  it('401 without a key; only kinds that the caller may read, and nothing of another tenant', async () => {
    expect((await world.api.request('GET', '/search?q=acme', { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    expect(await show('acme', '', { key })).to.deep.equal([]);
    expect(await show(invoice.id, '&kinds=invoice', { key })).to.deep.equal([]);
    expect(await show('Event 7', '', { key })).to.deep.equal(['event acme_calls by event_id']);
    const ingestor = await world.api.keyWithRoles(['event_ingestor'], { user_type: 'service_account' });
    expect((await world.api.request('GET', '/search?q=acme', { key: ingestor })).status).to.equal(403);
    const other = (await world.api.otherTenant()).key;
    for (const q of ['acme', invoice.id, invoice.invoice_number!, 'Event 7', 'billing@acme.example'])
      expect(await search(q, '', { key: other }), q).to.deep.equal([]);
  });
});
