// What a change takes, clears and refuses, and that one which leaves all as it is changes nothing (docs/rules/records.md,
// "Changing a record"): of every resource that has a PUT.
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

type Fields = Record<string, unknown>;
type Made = Fields & { id: string };

/** Cost sheets and endpoints are deleted; a plan has grants and prices of other tests. */
const ARCHIVABLE = /^an? (customer|plan|feature|add-on|coupon|tax rate|credit grant|entitlement)$/;

describe('changing a record', () => {
  let api: TestApi;
  let plan: Made;
  let meter: Made;
  before(async () => {
    api = await startTestApi();
    meter = await make('/meters', { name: 'Calls', event_name: 'calls', aggregation: { type: 'COUNT' } });
    plan = await make('/plans', { name: 'Pro' });
  });
  after(() => api.stop());

  const make = async (path: string, body: unknown) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    const made: Fields = answer.body;
    return (made.costsheet ?? made.endpoint ?? made) as Made;
  };
  const put = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const answer = await api.request('PUT', path, { body, headers });
    expect(answer.status, answer.text).to.equal(200);
    const shown: Fields = answer.body;
    return (shown.costsheet ?? shown) as Made;
  };
  const readTag = async (path: string) => {
    const read = path === '/tenants/update' ? `/tenants/${api.scope.tenant_id}` : path;
    const { headers, text } = await api.request('GET', read);
    expect(headers.get('etag'), text).to.match(/^"[\w-]{22}"$/);
    return headers.get('etag')!;
  };
  /** Asks for the change of a record that the caller has read in another state. */
  const refuseTag = async (path: string, body: unknown, tag: string) => {
    const {
      status,
      body: answered,
      text,
    } = await api.request<Fields>('PUT', path, { body, headers: { 'if-match': tag } });
    expect([status, answered.code], text).to.deep.equal([409, 'version_conflict']);
  };
  /** How much was told of changes, in the audit log and as events. */
  const told = async () => {
    const { rows } = await api.services.postgres.raw(
      'select (select count(*) from audit_entries)::int as audited, (select count(*) from system_events)::int as events',
    );
    return rows[0];
  };
  const later = () => api.setNow(new Date(api.services.clock().getTime() + 1000));
  const me = async () => (await api.request('GET', '/users/me')).body;
  const flat = () => ({
    entity_type: 'PLAN',
    entity_id: plan.id,
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    amount: '12.50',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
    currency: 'usd',
  });
  const oneOff = { customer_id: '', currency: 'usd', amount_due: '5', total: '5', subtotal: '5' };
  const setting = '/settings/invoice_config';

  const places = new Map<string, [path: string, changes: Fields]>();
  /** The record, where it is changed, and a change of each field that may be changed. */
  const resources: [string, () => Promise<[path: string, changes: Fields]>][] = [
    [
      'a customer',
      async () => of('/customers', { external_id: 'c' }, { name: 'Ada', email: '', metadata: { a: '1' } }),
    ],
    [
      'a plan',
      async () => of('/plans', { name: 'P' }, { name: 'Q', description: 'd', display_order: 3, metadata: null }),
    ],
    [
      'a feature',
      async () =>
        of(
          '/features',
          { name: 'F', type: 'metered', meter_id: meter.id },
          { name: 'G', filters: [{ key: 'region', values: ['eu', 'us'] }], unit_singular: 'a', unit_plural: 'as' },
        ),
    ],
    ['a meter', async () => [`/meters/${meter.id}`, { filters: [{ key: 'tier', values: ['gold'] }] }]],
    [
      'a price',
      async () => of('/prices', flat(), { display_name: 'Fee', amount: '12.5', metadata: { b: '2', a: '1' } }),
    ],
    ['an add-on', async () => of('/addons', { name: 'A', lookup_key: 'a' }, { name: 'B', metadata: { n: 1, m: [2] } })],
    [
      'a coupon',
      async () =>
        of('/coupons', { name: 'C', type: 'percentage', percentage_off: '5', cadence: 'once' }, { name: 'D' }),
    ],
    ['a cost sheet', async () => of('/costs', { name: 'S' }, { description: 'd', lookup_key: 'k' })],
    [
      'a tax rate',
      async () => of('/taxes/rates', { name: 'T', code: 't', percentage_value: '19' }, { description: 'd' }),
    ],
    [
      'a credit grant',
      async () =>
        of(
          '/creditgrants',
          { name: 'G', scope: 'PLAN', plan_id: plan.id, credits: '5', cadence: 'ONETIME' },
          { name: 'H' },
        ),
    ],
    [
      'an entitlement',
      async () => {
        const feature = await make('/features', { name: 'Limited', type: 'metered', meter_id: meter.id });
        const granted = { entity_type: 'PLAN', entity_id: plan.id, feature_id: feature.id, feature_type: 'metered' };
        return of('/entitlements', granted, { usage_limit: 5, usage_reset_period: 'MONTHLY', is_soft_limit: true });
      },
    ],
    [
      'an endpoint of webhooks',
      async () => of('/webhooks/endpoints', { url: 'https://example.com/' }, { event_names: ['invoice.finalized'] }),
    ],
    [
      'an invoice',
      async () => {
        const { id: customer_id } = await make('/customers', { external_id: 'payer' });
        return of('/invoices', { ...oneOff, customer_id }, { due_date: '2030-01-01T00:00:00Z', metadata: { a: '1' } });
      },
    ],
    [
      'a subscription',
      async () => {
        const { id: customer_id } = await make('/customers', { external_id: 'subscriber' });
        const terms = { customer_id, plan_id: plan.id, currency: 'usd', billing_period: 'MONTHLY' };
        await make('/prices', flat());
        return of('/subscriptions', terms, { metadata: { a: '1' }, lookup_key: 'k' });
      },
    ],
    [
      'the tenant',
      async () => ['/tenants/update', { name: 'Acme', billing_details: { phone: '1' }, metadata: { a: '1' } }],
    ],
    ['a user', async () => ['/users/me', { name: 'Ada', metadata: { a: '1' } }]],
    ['an environment', async () => of('/environments', { name: 'E', type: 'development' }, { name: 'F' })],
    ['a setting', async () => [setting, { value: { prefix: 'ACME', due_date_days: 3 } }]],
  ];
  const of = async (path: string, body: Fields, changes: Fields): Promise<[string, Fields]> => [
    `${path}/${(await make(path, body)).id}`,
    changes,
  ];
  /** The same again, and no field at all, where a change may have none. */
  const nothingFor = (path: string, changes: Fields): Fields[] => {
    if (path.startsWith('/meters/')) return [changes];
    return [changes, path === setting ? { value: {} } : {}];
  };

  for (const [what, made] of resources)
    it(`that is ${what}: what it says already is not written, and not told`, async () => {
      const [path, changes] = await made();
      places.set(what, [path, changes]);
      later();
      const before = await told();
      const tag = await readTag(path);
      await refuseTag(path, changes, '"another"');
      expect(await told()).to.deep.equal(before);
      const first = await put(path, changes, { 'if-match': `"another", ${tag}` });
      const after = await told();
      expect(after.audited, 'a change is told').to.be.above(before.audited);
      const tagNow = await readTag(path);
      expect(tagNow).to.not.equal(tag);
      for (const same of nothingFor(path, changes)) await refuseTag(path, same, tag);
      later();
      for (const same of nothingFor(path, changes)) {
        const { version: _answered, ...again } = await put(path, same);
        const { version: _first, ...shown } = first;
        expect(again).to.deep.equal(shown);
        expect(await told()).to.deep.equal(after);
      }
      expect(await readTag(path)).to.equal(tagNow);
    });

  const archivable = resources.map(([what]) => what).filter((what) => ARCHIVABLE.test(what));
  for (const what of archivable)
    it(`that is ${what}, archived: it is read, not changed, and not archived again`, async () => {
      const [path, changes] = places.get(what)!;
      expect((await api.request('DELETE', path, { body: {} })).status).to.be.oneOf([200, 204]);
      expect((await api.request<Fields>('GET', path)).body).to.include({ status: 'archived' });
      const { status, body, text } = await api.request<Fields>('PUT', path, { body: changes });
      expect([status, body.code], text).to.deep.equal([400, 'invalid_operation']);
      expect(body.message).to.contain('is archived');
      if (what === 'a credit grant') return;
      const again = await api.request<Fields>('DELETE', path, { body: {} });
      expect([again.status, again.body.code]).to.deep.equal([404, 'not_found']);
    });

  const clearing: [string, string, Fields, Fields][] = [
    [
      'the tenant',
      '/tenants/update',
      { billing_details: { phone: '1' }, metadata: { a: '1' } },
      { billing_details: null, metadata: {} },
    ],
    ['a user', '/users/me', { name: 'Ada', metadata: { a: '1' } }, { name: '', metadata: {} }],
  ];
  for (const [what, path, set, cleared] of clearing)
    it(`null clears what may be empty of ${what}, and no more`, async () => {
      await put(path, set);
      const nulls = Object.fromEntries(Object.keys(set).map((field) => [field, null]));
      expect(await put(path, nulls)).to.deep.include(cleared);
      expect((await me()).tenant!.name)
        .to.be.a('string')
        .and.not.equal('');
    });

  it('null clears the times of day of a price, which has a successor then', async () => {
    const hourly = { type: 'SUM', field: 'n', bucket_size: 'HOUR' };
    const metered = await make('/meters', { name: 'Hourly', event_name: 'h', aggregation: hourly });
    const morning = { start: { hour: 8 }, end: { hour: 12 }, commitment_value: '5' };
    const times = {
      type: 'USAGE',
      invoice_cadence: 'ARREAR',
      meter_id: metered.id,
      commitment_time_buckets: [morning],
    };
    const price = await make('/prices', { ...flat(), ...times });
    expect(await put(`/prices/${price.id}`, { display_name: 'Still so' })).to.include({ id: price.id });
    const successor = await put(`/prices/${price.id}`, { commitment_time_buckets: null });
    expect(successor).to.include({ parent_price_id: price.id, commitment_time_buckets: null });
    expect(await put(`/prices/${successor.id}`, { commitment_time_buckets: null })).to.include({ id: successor.id });
  });

  const refused: [string, Fields, string][] = [
    ['/tenants/update', { name: null }, 'name'],
    ['/users/me', { password: null }, 'password'],
    ['/environments/', { name: null }, 'name'],
    ['/environments/', { type: null }, 'type'],
    ['/features/', { filters: null }, 'filters'],
  ];
  for (const [path, body, field] of refused)
    it(`null for ${field} of ${path} is refused by name`, async () => {
      const id = path.endsWith('/') ? 'any' : '';
      const answer = await api.request('PUT', `${path}${id}`, { body });
      expect(answer.status).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    });

  const described: [string, () => Fields][] = [
    ['/plans', () => ({ name: 'Described' })],
    ['/features', () => ({ name: 'Described', type: 'boolean' })],
    ['/prices', flat],
    ['/addons', () => ({ name: 'Described', lookup_key: 'described' })],
    ['/costs', () => ({ name: 'Described' })],
    ['/taxes/rates', () => ({ name: 'Described', code: 'described', percentage_value: '1' })],
    ['/webhooks/endpoints', () => ({ url: 'https://example.com/' })],
  ];
  for (const [path, fields] of described)
    it(`a description of ${path} is kept as it is sent, "" too, when it is made and when it is changed`, async () => {
      const made = await make(path, { ...fields(), description: '' });
      expect(made.description).to.equal('');
      expect((await put(`${path}/${made.id}`, { description: ' two ' })).description).to.equal(' two ');
      expect((await put(`${path}/${made.id}`, { description: '' })).description).to.equal('');
      expect((await put(`${path}/${made.id}`, { description: null })).description).to.equal(null);
    });
});
