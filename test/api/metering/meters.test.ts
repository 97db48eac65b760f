import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

const wanted = {
  name: 'API calls',
  event_name: ' api.call ',
  aggregation: { type: 'sum', field: 'tokens' },
  filters: [{ key: 'region', values: ['eu', 'us'] }],
};

describe('meters', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  const countMeters = async () => Number((await api.services.postgres('meters').count())[0]!.count);

  describe('201', () => {
    it('answers the whole record, in the spelling of the interface', async () => {
      const { status, body } = await api.request('POST', '/meters', { body: wanted });
      expect(status).to.equal(201);
      expect(body.id).to.match(/^meter_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(body).to.deep.include({
        ...api.scope,
        name: 'API calls',
        event_name: 'api.call',
        aggregation: {
          type: 'SUM',
          field: 'tokens',
          expression: null,
          multiplier: null,
          bucket_size: null,
          group_by: null,
        },
        filters: [{ key: 'region', values: ['eu', 'us'] }],
        reset_usage: 'BILLING_PERIOD',
        status: 'published',
      });
      expect(Date.parse(body.created_at)).to.equal(Date.parse('2026-03-15T12:00:00Z'));
      expect(body.created_at).to.match(/Z$/);
      expect(body).to.not.have.any.keys('state', 'version');
    });

    it('keeps a multiplier as decimal text, and a number in its place is understood', async () => {
      for (const multiplier of ['0.10', 0.1]) {
        const aggregation = { type: 'SUM_WITH_MULTIPLIER', field: 'bytes', multiplier };
        const { status, body } = await api.request('POST', '/meters', { body: { ...wanted, aggregation } });
        expect(status).to.equal(201);
        expect(body.aggregation.multiplier).to.equal('0.1');
      }
    });

    it('takes an expression beside a field, which is then ignored', async () => {
      const aggregation = { type: 'SUM', field: 'tokens', expression: 'input_tokens + 2.0 * output_tokens' };
      const { status, body } = await api.request('POST', '/meters', { body: { ...wanted, aggregation } });
      expect(status).to.equal(201);
      expect(body.aggregation).to.deep.include(aggregation);
    });

    it('is a record that GET answers alike', async () => {
      const made = await api.request('POST', '/meters', { body: wanted });
      const read = await api.request('GET', `/meters/${made.body.id}`);
      expect(read.status).to.equal(200);
      const { state, backfill, ...record } = read.body;
      expect(record).to.deep.equal(made.body);
      // No pipeline runs here: its past is still to be counted.
      expect({ state, backfill }).to.deep.equal({
        state: 'backfilling',
        backfill: { days_done: 0, days: null, live_at: null },
      });
    });
  });

  describe('200', () => {
    it('lists by event name and by ids, newest first', async () => {
      const ids: string[] = [];
      for (const at of ['2026-04-01T00:00:00Z', '2026-04-01T00:00:01Z', '2026-04-01T00:00:02Z']) {
        api.setNow(at);
        const made = await api.request('POST', '/meters', { body: { ...wanted, event_name: 'listed' } });
        ids.push(made.body.id);
      }
      const all = await api.request('GET', '/meters?event_name=listed&limit=2');
      expect(all.body.pagination).to.deep.include({ total: 3, limit: 2, offset: 0 });
      expect(all.body.items.map((item: { id: string }) => item.id)).to.deep.equal([ids[2], ids[1]]);
      const rest = await api.request('GET', '/meters?event_name=listed&limit=2&offset=2');
      expect(rest.body.items.map((item: { id: string }) => item.id)).to.deep.equal([ids[0]]);
      for (const query of [`meter_ids=${ids[0]},${ids[1]}`, `meter_ids=${ids[0]}&meter_ids=${ids[1]}`]) {
        const some = await api.request('GET', `/meters?${query}&order=asc`);
        expect(some.body.items.map((item: { id: string }) => item.id)).to.deep.equal([ids[0], ids[1]]);
      }
    });

    it('replaces the filters and grows the version', async () => {
      const { body } = await api.request('POST', '/meters', { body: wanted });
      const filters = [{ key: 'tier', values: ['gold'] }];
      const changed = await api.request('PUT', `/meters/${body.id}`, { body: { filters, name: 'ignored' } });
      expect(changed.status).to.equal(200);
      expect(changed.body.filters).to.deep.equal(filters);
      expect(changed.body.name).to.equal('API calls');
      expect(changed.headers.get('x-ignored-keys')).to.equal('name');
      const [row] = await api.services.postgres('meters').where('id', body.id);
      expect(row.version).to.equal(2);
    });

    it('archives by disable and by delete, and both may be repeated', async () => {
      for (const [method, suffix] of [
        ['POST', '/disable'],
        ['DELETE', ''],
      ] as const) {
        const { body } = await api.request('POST', '/meters', { body: wanted });
        for (let time = 0; time < 2; time++) {
          const gone = await api.request(method, `/meters/${body.id}${suffix}`);
          expect(gone.status).to.equal(200);
          expect(gone.body).to.have.keys('message');
        }
        const read = await api.request('GET', `/meters/${body.id}`);
        expect(read.body.status).to.equal('archived');
        const listed = await api.request('GET', `/meters?meter_ids=${body.id}`);
        expect(listed.body.items).to.deep.equal([]);
        const archived = await api.request('GET', `/meters?meter_ids=${body.id}&status=archived`);
        expect(archived.body.items).to.have.length(1);
      }
    });
  });

  describe('400, with nothing stored', () => {
    const refused: [string, unknown, RegExp][] = [
      ['no body', undefined, /^name: is required/],
      ['no name', { ...wanted, name: undefined }, /^name: is required/],
      ['a blank name', { ...wanted, name: ' ' }, /^name: /],
      ['a name that is a number', { ...wanted, name: 7 }, /^name: /],
      ['a blank event_name', { ...wanted, event_name: '  ' }, /^event_name: /],
      ['no aggregation', { ...wanted, aggregation: undefined }, /^aggregation: is required/],
      ['an unknown aggregation', { ...wanted, aggregation: { type: 'MEDIAN' } }, /^aggregation\.type: /],
      ['SUM without field', { ...wanted, aggregation: { type: 'SUM' } }, /^aggregation\.field: /],
      [
        'an expression that does not compile',
        { ...wanted, aggregation: { type: 'SUM', expression: 'tokens *' } },
        /^aggregation\.expression: /,
      ],
      [
        'a path as the field',
        { ...wanted, aggregation: { type: 'SUM', field: 'usage.tokens' } },
        /^aggregation\.field: .* properties\.usage\.tokens for a value inside an object/,
      ],
      [
        'a name with a slash as an expression',
        { ...wanted, aggregation: { type: 'SUM', expression: 'tokens/total' } },
        /^aggregation\.expression: .* properties\["tokens\/total"\] for the property of that name/,
      ],
      [
        'an expression of no property',
        { ...wanted, aggregation: { type: 'SUM', expression: '1 + 1' } },
        /^aggregation\.expression: /,
      ],
      [
        'a multiplier for SUM',
        { ...wanted, aggregation: { type: 'SUM', field: 'a', multiplier: '2' } },
        /^aggregation\.multiplier: /,
      ],
      [
        'no multiplier',
        { ...wanted, aggregation: { type: 'SUM_WITH_MULTIPLIER', field: 'a' } },
        /^aggregation\.multiplier: /,
      ],
      [
        'group_by for SUM',
        { ...wanted, aggregation: { type: 'SUM', field: 'a', group_by: 'b' } },
        /^aggregation\.group_by: /,
      ],
      ['a filter without values', { ...wanted, filters: [{ key: 'a', values: [] }] }, /^filters\[0\]\.values: /],
      [
        'a filter value that is a number',
        { ...wanted, filters: [{ key: 'a', values: [1] }] },
        /^filters\[0\]\.values\[0\]: /,
      ],
      ['filters that are no array', { ...wanted, filters: 'a' }, /^filters: /],
      ['an unknown reset_usage', { ...wanted, reset_usage: 'DAILY' }, /^reset_usage: /],
      ['a NUL in a text', { ...wanted, name: 'a\u0000b' }, /cannot be stored/],
    ];
    for (const [what, body, message] of refused) {
      it(`refuses ${what}`, async () => {
        const before = await countMeters();
        const answer = await api.request('POST', '/meters', { body });
        expect(answer.status).to.equal(400);
        expect(answer.body.code).to.equal('validation_error');
        expect(answer.body.message).to.match(message);
        expect(await countMeters()).to.equal(before);
      });
    }

    it('refuses an update without filters, and one of an archived meter', async () => {
      const { body } = await api.request('POST', '/meters', { body: wanted });
      for (const update of [{ filters: [] }, {}]) {
        const answer = await api.request('PUT', `/meters/${body.id}`, { body: update });
        expect(answer.status).to.equal(400);
        expect(answer.body.message).to.match(/^filters: /);
      }
      await api.request('DELETE', `/meters/${body.id}`);
      const late = await api.request('PUT', `/meters/${body.id}`, { body: { filters: wanted.filters } });
      expect(late.status).to.equal(400);
      expect(late.body.code).to.equal('invalid_operation');
    });

    describe('archiving one that something is charged by', () => {
      const make = async <Path extends string>(path: Path, body: unknown) => {
        const answer = await api.request('POST', path, { body });
        expect(answer.status, answer.text).to.equal(201);
        return answer.body;
      };
      const archive = (id: string) => api.request('DELETE', `/meters/${id}`);
      const price = (meter_id: string, entity_type: string, entity_id: string) => ({
        entity_type,
        entity_id,
        meter_id,
        type: 'USAGE',
        billing_model: 'FLAT_FEE',
        billing_period: 'MONTHLY',
        billing_period_count: 1,
        billing_cadence: 'RECURRING',
        invoice_cadence: 'ARREAR',
        price_unit_type: 'FIAT',
        currency: 'usd',
        amount: '1',
      });
      const sellers: [string, string, object][] = [
        ['PLAN', '/plans', { name: 'Charged' }],
        ['ADDON', '/addons', { name: 'Charged', lookup_key: 'charged', type: 'onetime' }],
        ['COSTSHEET', '/costs', { name: 'Charged' }],
      ];
      for (const [entity_type, path, body] of sellers)
        it(`by a price of a ${entity_type}, which is named, until that is gone`, async () => {
          const meter = await make('/meters', wanted);
          const made = await make(path, body);
          const seller = (made.costsheet ?? made.addon ?? made) as { id: string };
          const { id } = await make('/prices', price(meter.id, entity_type, seller.id));
          const refused = await archive(meter.id);
          expect(refused.status).to.equal(400);
          expect(refused.body.code).to.equal('invalid_operation');
          expect(refused.body.message).to.include(`1 price (${id})`);
          expect(refused.body.details!.price_ids).to.deep.equal([id]);
          expect((await api.request('POST', `/meters/${meter.id}/disable`)).status).to.equal(400);
          expect((await api.request('GET', `/meters/${meter.id}`)).body.status).to.equal('published');
          expect((await api.request('DELETE', `${path}/${seller.id}`)).status).to.equal(200);
          expect((await archive(meter.id)).status).to.equal(200);
        });

      it('by a price that is to end later, and not by one that has ended', async () => {
        const meter = await make('/meters', wanted);
        const plan = await make('/plans', { name: 'Ending' });
        const { id } = await make('/prices', price(meter.id, 'PLAN', plan.id));
        const end_date = new Date(api.services.clock().getTime() + 60_000).toISOString();
        await api.request('DELETE', `/prices/${id}`, { body: { end_date } });
        expect((await archive(meter.id)).status).to.equal(400);
        api.setNow(end_date);
        expect((await archive(meter.id)).status).to.equal(200);
      });

      it('by a line of a subscription, until that is cancelled', async () => {
        const meter = await make('/meters', wanted);
        const plan = await make('/plans', { name: 'Subscribed' });
        const { id } = await make('/prices', price(meter.id, 'PLAN', plan.id));
        const { id: customer_id } = await make('/customers', { external_id: 'who-is-charged' });
        const monthly = { currency: 'usd', billing_period: 'MONTHLY', billing_period_count: 1 };
        const override_line_items = [{ price_id: id, amount: '2' }];
        const terms = { customer_id, plan_id: plan.id, ...monthly, override_line_items };
        const subscription = await make('/subscriptions', terms);
        // The subscription goes on charging by a price of its own.
        expect((await api.request('DELETE', `/prices/${id}`, { body: {} })).status).to.equal(200);
        const refused = await archive(meter.id);
        expect(refused.status).to.equal(400);
        expect(refused.body.message).to.include('1 line (subs_line_');
        const cancel = { body: { cancellation_type: 'immediate' } };
        expect((await api.request('POST', `/subscriptions/${subscription.id}/cancel`, cancel)).status).to.equal(200);
        expect((await archive(meter.id)).status).to.equal(200);
      });
    });

    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=x',
      'offset=-1',
      'status=gone',
      'order=up',
      'expand=plans',
      'sort=secret',
    ]) {
      it(`refuses a list with ${query}`, async () => {
        const answer = await api.request('GET', `/meters?${query}`);
        expect(answer.status).to.equal(400);
        expect(answer.body.message).to.contain(query.split('=')[0]);
      });
    }
  });

  it('401 without a key', async () => {
    for (const [method, path] of [
      ['POST', '/meters'],
      ['GET', '/meters'],
      ['GET', '/meters/meter_1'],
    ] as const) {
      expect((await api.request(method, path, { key: null })).status).to.equal(401);
    }
  });

  it("404 for what does not exist and for another tenant's, which stays as it was", async () => {
    const made = await api.request('POST', '/meters', { body: wanted });
    const { key } = await api.otherTenant();
    const path = `/meters/${made.body.id}` as const;
    for (const request of [
      () => api.request('GET', path, { key }),
      () => api.request('PUT', path, { key, body: { filters: [{ key: 'x', values: ['y'] }] } }),
      () => api.request('DELETE', path, { key }),
      () => api.request('POST', `${path}/disable`, { key }),
      () => api.request('GET', '/meters/meter_unknown'),
    ]) {
      const answer = await request();
      expect(answer.status).to.equal(404);
      expect(answer.body.code).to.equal('not_found');
    }
    expect((await api.request('GET', '/meters', { key })).body.items).to.deep.equal([]);
    expect((await api.request('GET', path)).body).to.deep.include(made.body);
  });
});
