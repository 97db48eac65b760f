import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Meter } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/features', () => {
  let api: TestApi;
  let meter: Meter;
  let count = 0;
  const name = () => `Feature ${++count}`;
  const inline = () => ({
    name: 'Tokens',
    event_name: 'tokens',
    aggregation: { type: 'SUM', field: 'n' },
    filters: [{ key: 'model', values: ['a'] }],
    reset_usage: 'BILLING_PERIOD',
  });

  before(async () => {
    api = await startTestApi({ now: NOW });
    meter = (await api.request('POST', '/meters', { body: inline() })).body;
  });
  after(() => api.stop());

  const post = (body: unknown) => api.request('POST', '/features', { body });
  const create = async (fields: Record<string, unknown> = {}) => {
    const answer = await post({ name: name(), type: 'boolean', ...fields });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const get = async (id: string) => (await api.request('GET', `/features/${id}`)).body;
  const counts = async () => [
    (await api.request('GET', '/features')).body.pagination.total,
    (await api.request('GET', '/meters')).body.pagination.total,
  ];

  describe('201', () => {
    it('answers every key of the contract', async () => {
      const answer = await post({ name: 'Single sign-on', type: 'boolean' });
      expect(answer.status, answer.text).to.equal(201);
      const { id, created_by: _created, updated_by: _updated, ...rest } = answer.body;
      expect(id).to.match(/^feat_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...api.scope,
        name: 'Single sign-on',
        lookup_key: 'single-sign-on',
        description: null,
        type: 'boolean',
        meter_id: null,
        metadata: null,
        unit_singular: null,
        unit_plural: null,
        reporting_unit: null,
        alert_settings: null,
        group_id: null,
        group: null,
        meter: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect(await get(id)).to.deep.equal(answer.body);
    });

    it('metered, by a meter that is there', async () => {
      const feature = await create({ type: 'METERED', meter_id: meter.id });
      expect(feature).to.include({ type: 'metered', meter_id: meter.id });
      expect(feature.meter).to.deep.equal(meter);
    });

    it('metered, together with its meter', async () => {
      const feature = await create({ type: 'metered', meter: inline() });
      const made = (await api.request('GET', `/meters/${feature.meter_id}`)).body;
      expect(made).to.deep.include({ ...inline(), aggregation: made.aggregation, status: 'published' });
      // How far its past is counted is told where a meter is asked for by itself.
      const { state: _state, backfill: _backfill, ...record } = made;
      expect(feature.meter).to.deep.equal(record);
    });

    it('keeps units, thresholds and metadata; thresholds and rates are JSON numbers', async () => {
      const feature = await create({
        type: 'static',
        lookup_key: 'seats',
        description: 'Seats',
        metadata: { a: 'b' },
        unit_singular: 'seat',
        unit_plural: 'seats',
        reporting_unit: { unit_singular: 'team', unit_plural: 'teams', conversion_rate: '0.125' },
        alert_settings: {
          alert_enabled: true,
          critical: { threshold: '10.5', condition: 'below' },
          warning: { threshold: 20, condition: 'below' },
        },
      });
      expect(feature).to.deep.include({
        lookup_key: 'seats',
        metadata: { a: 'b' },
        unit_singular: 'seat',
        reporting_unit: { unit_singular: 'team', unit_plural: 'teams', conversion_rate: 0.125 },
        alert_settings: {
          alert_enabled: true,
          critical: { threshold: 10.5, condition: 'below' },
          warning: { threshold: 20, condition: 'below' },
          info: null,
        },
      });
    });

    it('alert_enabled is false by default', async () => {
      const feature = await create({ alert_settings: { critical: { threshold: '1' } } });
      expect(feature.alert_settings).to.deep.equal({
        alert_enabled: false,
        critical: { threshold: 1, condition: null },
        warning: null,
        info: null,
      });
    });
  });

  describe('400, 404 and 409, and nothing is stored, not even the meter', () => {
    const above = (threshold: string) => ({ threshold, condition: 'above' });
    const wrong: [string, () => Record<string, unknown>, number, string][] = [
      ['no name', () => ({ type: 'boolean' }), 400, 'name'],
      ['a blank name', () => ({ name: '', type: 'boolean' }), 400, 'name'],
      [
        'a key of 256 characters',
        () => ({ name: name(), type: 'boolean', lookup_key: 'x'.repeat(256) }),
        400,
        'lookup_key',
      ],
      ['no type', () => ({ name: name() }), 400, 'type'],
      ['an unknown type', () => ({ name: name(), type: 'tiered' }), 400, 'type'],
      ['metered without a meter', () => ({ name: name(), type: 'metered' }), 400, 'meter_id'],
      [
        'metered with two meters',
        () => ({ name: name(), type: 'metered', meter_id: meter.id, meter: inline() }),
        400,
        'meter',
      ],
      ['boolean with a meter', () => ({ name: name(), type: 'boolean', meter_id: meter.id }), 400, 'meter_id'],
      ['static with an inline meter', () => ({ name: name(), type: 'static', meter: inline() }), 400, 'meter'],
      [
        'a meter without a field',
        () => ({ name: name(), type: 'metered', meter: { ...inline(), aggregation: { type: 'SUM' } } }),
        400,
        'meter.aggregation.field',
      ],
      [
        'a meter without an event',
        () => ({ name: name(), type: 'metered', meter: { ...inline(), event_name: ' ' } }),
        400,
        'meter.event_name',
      ],
      [
        'a meter of an unknown kind',
        () => ({ name: name(), type: 'metered', meter: { ...inline(), aggregation: { type: 'MEDIAN' } } }),
        400,
        'meter.aggregation.type',
      ],
      ['one unit of two', () => ({ name: name(), type: 'boolean', unit_singular: 'seat' }), 400, 'unit_plural'],
      ['the other unit of two', () => ({ name: name(), type: 'boolean', unit_plural: 'seats' }), 400, 'unit_singular'],
      [
        'a reporting unit with one name',
        () => ({ name: name(), type: 'boolean', reporting_unit: { unit_singular: 'k', conversion_rate: '1' } }),
        400,
        'reporting_unit.unit_plural',
      ],
      [
        'a reporting unit without a rate',
        () => ({ name: name(), type: 'boolean', reporting_unit: { unit_singular: 'k', unit_plural: 'k' } }),
        400,
        'reporting_unit.conversion_rate',
      ],
      [
        'a rate of 0',
        () => ({
          name: name(),
          type: 'boolean',
          reporting_unit: { unit_singular: 'k', unit_plural: 'k', conversion_rate: '0' },
        }),
        400,
        'reporting_unit.conversion_rate',
      ],
      [
        'a rate that no JSON number can say',
        () => ({
          name: name(),
          type: 'boolean',
          reporting_unit: { unit_singular: 'k', unit_plural: 'k', conversion_rate: '1.0000000000000001' },
        }),
        400,
        'reporting_unit.conversion_rate',
      ],
      [
        'alerts without a threshold',
        () => ({ name: name(), type: 'boolean', alert_settings: { alert_enabled: true } }),
        400,
        'alert_settings',
      ],
      [
        'a warning without a critical',
        () => ({ name: name(), type: 'boolean', alert_settings: { warning: above('1') } }),
        400,
        'alert_settings.critical',
      ],
      [
        'two conditions',
        () => ({
          name: name(),
          type: 'boolean',
          alert_settings: { critical: above('2'), warning: { threshold: '1', condition: 'below' } },
        }),
        400,
        'alert_settings',
      ],
      [
        'a warning beyond the critical',
        () => ({ name: name(), type: 'boolean', alert_settings: { critical: above('1'), warning: above('2') } }),
        400,
        'alert_settings',
      ],
      [
        'an info beyond the warning',
        () => ({
          name: name(),
          type: 'boolean',
          alert_settings: { critical: above('3'), warning: above('1'), info: above('2') },
        }),
        400,
        'alert_settings',
      ],
      [
        'a threshold that is none',
        () => ({ name: name(), type: 'boolean', alert_settings: { critical: above('high') } }),
        400,
        'alert_settings.critical.threshold',
      ],
      ['a name without letters and no key', () => ({ name: '!!!', type: 'boolean' }), 400, 'lookup_key'],
      ['metadata with a number', () => ({ name: name(), type: 'boolean', metadata: { a: 1 } }), 400, 'metadata.a'],
      ['a meter that does not exist', () => ({ name: name(), type: 'metered', meter_id: newId('meter') }), 404, ''],
      ['a group that does not exist', () => ({ name: name(), type: 'boolean', group_id: 'group_x' }), 404, ''],
      [
        'a key that exists, with a meter',
        () => ({ name: name(), type: 'metered', meter: inline(), lookup_key: 'taken' }),
        409,
        '',
      ],
      ['a name whose key exists', () => ({ name: 'Taken!', type: 'boolean' }), 409, ''],
    ];
    before(() => create({ lookup_key: 'taken' }));
    for (const [why, body, status, field] of wrong)
      it(`${status} for ${why}`, async () => {
        const before = await counts();
        const answer = await post(body());
        expect(answer.status, answer.text).to.equal(status);
        if (field) expect(answer.body.details!.field).to.equal(field);
        expect(await counts()).to.deep.equal(before);
      });

    it('404 for an archived meter', async () => {
      const old = (await api.request('POST', '/meters', { body: inline() })).body;
      await api.request('DELETE', `/meters/${old.id}`);
      expect((await post({ name: name(), type: 'metered', meter_id: old.id })).status).to.equal(404);
    });

    it('401 without a key, 403 for a reader', async () => {
      const body = { name: name(), type: 'boolean' };
      expect((await api.request('POST', '/features', { body, key: null })).status).to.equal(401);
      const key = await api.keyWithRoles(['all_reader']);
      expect((await api.request('POST', '/features', { body, key })).status).to.equal(403);
    });

    it("404 for another tenant's feature and meter", async () => {
      const feature = await create({ type: 'metered', meter_id: meter.id });
      const { key } = await api.otherTenant();
      const asks: [string, string, unknown?][] = [
        ['GET', `/features/${feature.id}`],
        ['PUT', `/features/${feature.id}`, { name: 'Theirs' }],
        ['PUT', `/features/${feature.id}`, { filters: [{ key: 'model', values: ['z'] }] }],
        ['DELETE', `/features/${feature.id}`],
        ['POST', `/features/${feature.id}/clone`, { name: 'Theirs', lookup_key: 'theirs' }],
        ['POST', '/features', { name: 'Theirs', type: 'metered', meter_id: meter.id }],
      ];
      for (const [method, path, body] of asks)
        expect((await api.request(method, path, { key, body })).status, `${method} ${path}`).to.equal(404);
      expect((await api.request('GET', '/features', { key })).body.items).to.deep.equal([]);
      expect(await get(feature.id)).to.deep.equal(feature);
    });
  });

  describe('PUT', () => {
    const put = (id: string, body: unknown) => api.request('PUT', `/features/${id}`, { body });

    it('changes what is given and leaves the rest', async () => {
      const feature = await create({ metadata: { a: '1' }, unit_singular: 'seat', unit_plural: 'seats' });
      const answer = await put(feature.id, { name: 'Seats', unit_singular: 'chair', metadata: { b: '2' } });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.deep.equal({ ...feature, name: 'Seats', unit_singular: 'chair', metadata: { b: '2' } });
      const cleared = await put(feature.id, { unit_singular: null, unit_plural: '', metadata: null });
      expect(cleared.body).to.include({ unit_singular: null, unit_plural: null, metadata: null, name: 'Seats' });
    });

    it("filters replace those of the feature's meter", async () => {
      const feature = await create({ type: 'metered', meter: inline() });
      const filters = [{ key: 'region', values: ['eu', 'us'] }];
      const answer = await put(feature.id, { filters, description: 'x' });
      expect(answer.body.meter!.filters).to.deep.equal(filters);
      expect((await api.request('GET', `/meters/${feature.meter_id}`)).body.filters).to.deep.equal(filters);
    });

    const wrong: [string, Record<string, unknown>, number][] = [
      ['a blank name', { name: '' }, 400],
      ['half of the units', { unit_plural: null }, 400],
      ['alerts without a threshold', { alert_settings: { alert_enabled: true } }, 400],
      ['filters without values, with a new name', { name: 'x', filters: [{ key: 'a', values: [] }] }, 400],
      ['no filters', { filters: [] }, 400],
      ['a group that does not exist', { group_id: 'group_x' }, 404],
    ];
    for (const [why, body, status] of wrong)
      it(`${status} for ${why}, and nothing changes`, async () => {
        const feature = await create({ type: 'metered', meter: inline(), unit_singular: 'a', unit_plural: 'b' });
        const answer = await put(feature.id, body);
        expect(answer.status, answer.text).to.equal(status);
        expect(await get(feature.id)).to.deep.equal(feature);
      });

    it('400 for filters of a feature without a meter, 404 for an unknown feature', async () => {
      const filters = [{ key: 'a', values: ['b'] }];
      expect((await put((await create()).id, { filters })).status).to.equal(400);
      expect((await put(newId('feature'), { name: 'x' })).status).to.equal(404);
    });
  });

  describe('DELETE and clone', () => {
    it('archives, gives the key back, and is archived and changed no more', async () => {
      const feature = await create({ lookup_key: 'once' });
      const answer = await api.request('DELETE', `/features/${feature.id}`);
      expect(answer.status).to.equal(200);
      expect(answer.body.message).to.be.a('string');
      expect((await get(feature.id)).status).to.equal('archived');
      expect((await api.request('DELETE', `/features/${feature.id}`)).status).to.equal(404);
      expect((await api.request('PUT', `/features/${feature.id}`, { body: { name: 'x' } })).status).to.equal(400);
      await create({ lookup_key: 'once' });
    });

    it('copies under a new name and key, with the same meter', async () => {
      const feature = await create({ type: 'metered', meter_id: meter.id, description: 'x', metadata: { a: '1' } });
      const body = { name: 'Copy', lookup_key: 'copy', metadata: { c: '3' } };
      const answer = await api.request('POST', `/features/${feature.id}/clone`, { body });
      expect(answer.status, answer.text).to.equal(201);
      const { id, ...copy } = answer.body;
      expect(id).to.not.equal(feature.id);
      const { id: _id, ...original } = feature;
      expect(copy).to.deep.equal({ ...original, ...body });
      const clone = async (of: string, given: unknown) =>
        (await api.request('POST', `/features/${of}/clone`, { body: given })).status;
      expect(await clone(feature.id, body)).to.equal(409);
      expect(await clone(feature.id, { name: 'Copy' })).to.equal(400);
      expect(await clone(feature.id, { lookup_key: 'copy-2' })).to.equal(400);
      expect(await clone(newId('feature'), { name: 'x', lookup_key: 'copy-3' })).to.equal(404);
    });
  });

  describe('lists and searches', () => {
    let mine: string;
    let meterId: string;
    const names = (answer: { body: { items?: { name: string }[] } }) =>
      answer.body.items!.map((feature) => feature.name);
    const search = (body: unknown) => api.request('POST', '/features/search', { body, key: mine });

    before(async () => {
      mine = (await api.otherTenant()).key;
      for (const [minute, body] of [
        { name: 'API calls', type: 'metered', meter: inline() },
        { name: '100% uptime', type: 'static' },
        { name: 'SSO', type: 'boolean' },
      ].entries()) {
        api.setNow(`2026-03-15T12:0${minute}:00Z`);
        const answer = await api.request('POST', '/features', { body, key: mine });
        meterId ??= answer.body.meter_id!;
      }
      api.setNow(NOW);
    });

    const cases: [string, () => Record<string, unknown>, string[]][] = [
      ['nothing asked: newest first', () => ({}), ['SSO', '100% uptime', 'API calls']],
      ['a lookup key', () => ({ lookup_key: 'sso' }), ['SSO']],
      ['lookup keys', () => ({ lookup_keys: ['sso', 'api-calls'] }), ['SSO', 'API calls']],
      ['meters', () => ({ meter_ids: [meterId] }), ['API calls']],
      ['a part of the name, in any case', () => ({ name_contains: 'CALL' }), ['API calls']],
      ['signs of a pattern are text', () => ({ name_contains: '0%' }), ['100% uptime']],
      ['sorted by name', () => ({ sort: [{ field: 'type', direction: 'asc' }] }), ['SSO', 'API calls', '100% uptime']],
    ];
    for (const [what, body, expected] of cases)
      it(what, async () => {
        expect(names(await search(body()))).to.deep.equal(expected);
      });

    it('ids, and the same from a query string', async () => {
      const [sso, , calls] = (await search({})).body.items;
      expect(names(await search({ feature_ids: [sso!.id, calls!.id] }))).to.deep.equal(['SSO', 'API calls']);
      const list = (query: string) => api.request('GET', `/features?${query}`, { key: mine });
      expect(names(await list(`feature_ids=${sso!.id},${calls!.id}&limit=1`))).to.deep.equal(['SSO']);
      expect(names(await list('lookup_keys=sso&name_contains=s'))).to.deep.equal(['SSO']);
    });

    it('the meter is null until it is asked for', async () => {
      const body = { meter_ids: [meterId] };
      expect((await search(body)).body.items[0]!.meter).to.equal(null);
      expect((await search({ ...body, expand: 'meters' })).body.items[0]!.meter!.id).to.equal(meterId);
      expect((await search({ expand: 'plans' })).status).to.equal(400);
    });
  });
});
