/** Times of day with a commitment of their own are kept on the price, and charged by nobody yet. */
import { expect } from 'chai';
import type { Plan } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('/prices: commitment_time_buckets', () => {
  let api: TestApi;
  let plan: Plan;
  const meters = new Map<string, string>();

  before(async () => {
    api = await startTestApi();
    plan = (await api.request('POST', '/plans', { body: { name: 'Windows' } })).body;
    for (const bucket_size of ['HOUR', '15MIN', null]) {
      const aggregation = { type: 'SUM', field: 'n', bucket_size };
      const body = { name: `Calls ${bucket_size}`, event_name: 'call', aggregation };
      meters.set(String(bucket_size), (await api.request('POST', '/meters', { body })).body.id);
    }
  });
  after(() => api.stop());

  const MORNING = { start: { hour: 9, minute: 30 }, end: { hour: 12 }, commitment_value: '5' };
  const send = (commitment_time_buckets: unknown, meter = 'HOUR', fields: object | { entity_id: string } = {}) => {
    const usage = { type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: meters.get(meter) };
    const charge = { billing_model: 'FLAT_FEE', amount: '1', currency: 'usd', billing_period: 'MONTHLY' };
    const body = { entity_type: 'PLAN', entity_id: plan.id, ...usage, ...charge, commitment_time_buckets, ...fields };
    return api.request('POST', '/prices', { body });
  };

  it('201: complete, in order, without minutes where the windows are hours', async () => {
    const night = {
      start: { hour: 22 },
      end: { hour: 6 },
      commitment_type: 'QUANTITY',
      commitment_value: 7,
      overage_factor: '1.5',
    };
    const { status, body, text } = await send([night, MORNING]);
    expect(status, text).to.equal(201);
    const [morning, other] = body.commitment_time_buckets!;
    expect(morning!.id).to.match(/^bucket_\w{26}$/);
    const kept = {
      id: morning!.id,
      price: null,
      commitment_type: 'amount',
      commitment_value: '5',
      overage_factor: '1',
    };
    expect(morning).to.deep.equal({
      ...kept,
      start: { hour: 9, minute: 0 },
      end: { hour: 12, minute: 0 },
      true_up_enabled: false,
    });
    expect(other).to.include({ commitment_type: 'quantity', commitment_value: '7', overage_factor: '1.5' });
    expect((await api.request('GET', `/prices/${body.id}`)).body).to.deep.equal(body);
    const fine = await send([MORNING], '15MIN');
    expect(fine.body.commitment_time_buckets![0]!.start).to.deep.equal({ hour: 9, minute: 30 });
    expect((await send([])).body.commitment_time_buckets).to.equal(null);
  });

  const AT_ELEVEN = { ...MORNING, start: { hour: 11 }, end: { hour: 13 } };
  const wrong: [string, unknown, string, string?, object?][] = [
    ['two that overlap', [MORNING, AT_ELEVEN], 'commitment_time_buckets[1].start'],
    ['a meter without windows', [MORNING], 'commitment_time_buckets', 'null'],
    ['no commitment', [{ ...MORNING, commitment_value: '0' }], 'commitment_time_buckets[0].commitment_value'],
    ['an hour that there is not', [{ ...MORNING, start: { hour: 25 } }], 'commitment_time_buckets[0].start.hour'],
    [
      'a price of its own without an open end',
      [
        {
          ...MORNING,
          price: { billing_model: 'TIERED', tier_mode: 'SLAB', tiers: [{ up_to: 1, unit_amount: '1' }] },
        },
      ],
      'commitment_time_buckets[0].price.tiers[0].up_to',
    ],
    [
      'a fixed price',
      [MORNING],
      'commitment_time_buckets',
      'HOUR',
      { type: 'FIXED', meter_id: null, invoice_cadence: 'ADVANCE' },
    ],
  ];
  for (const [why, buckets, field, meter, fields] of wrong)
    it(`400 for ${why}, by name`, async () => {
      const answer = await send(buckets, meter, fields);
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    });

  it('a change of them is a successor; another change takes them along', async () => {
    const { body: price } = await send([MORNING]);
    const put = async (id: string, body: object) => (await api.request('PUT', `/prices/${id}`, { body })).body;
    const dearer = await put(price.id, { amount: '2' });
    expect(dearer.commitment_time_buckets![0]).to.deep.include({
      start: { hour: 9, minute: 0 },
      commitment_value: '5',
    });
    const moved = await put(dearer.id, { commitment_time_buckets: [AT_ELEVEN] });
    expect(moved).to.include({ parent_price_id: price.id, amount: '2' });
    expect(moved.commitment_time_buckets![0]!.start.hour).to.equal(11);
    const none = await put(moved.id, { commitment_time_buckets: [] });
    expect(none).to.include({ parent_price_id: price.id, commitment_time_buckets: null });
  });

  it('the line of a subscription has them, in each window', async () => {
    const own = (await api.request('POST', '/plans', { body: { name: 'Committed' } })).body;
    await send([MORNING], 'HOUR', { entity_id: own.id });
    await api.request('POST', '/customers', { body: { external_id: 'acme' } });
    const body = { external_customer_id: 'acme', plan_id: own.id, currency: 'usd', billing_period: 'MONTHLY' };
    const answer = await api.request('POST', '/subscriptions', { body });
    expect(answer.status, answer.text).to.equal(201);
    const [line] = answer.body.line_items;
    expect(line).to.include({ commitment_windowed: true, commitment_type: null });
    expect(line!.commitment_time_buckets).to.deep.equal(line!.price!.commitment_time_buckets);
  });
});
