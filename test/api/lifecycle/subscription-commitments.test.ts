/** Which commitments a new subscription may state (docs/rules/commitments.md, "Possible commitments"). */
import { expect } from 'chai';
import type { Plan } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

type Fields = Record<string, unknown>;

describe('/subscriptions: commitments', () => {
  let api: TestApi;
  let plan: Plan;
  const price: Record<string, string> = {};

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    await make('/customers', { external_id: 'acme', name: 'Acme' });
    plan = await make('/plans', { name: 'Committed' });
    const other = await make('/plans', { name: 'Other' });
    const meter = (name: string, aggregation: Fields) =>
      make('/meters', { name, event_name: name, aggregation: { type: 'SUM', field: 'n', ...aggregation } });
    const calls = await meter('calls', {});
    const cpu = await meter('cpu', { bucket_size: 'HOUR' });
    price.calls = await priced(plan.id, { meter_id: calls.id });
    price.cpu = await priced(plan.id, { meter_id: cpu.id });
    price.seats = await priced(plan.id, { type: 'FIXED', invoice_cadence: 'ADVANCE' });
    price.other = await priced(other.id, { meter_id: cpu.id });
  });
  after(() => api.stop());

  const make = async <Path extends string>(path: Path, body: Fields) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const priced = async (entity_id: string, fields: Fields): Promise<string> => {
    const usage = { type: 'USAGE', billing_model: 'FLAT_FEE', amount: '1', invoice_cadence: 'ARREAR' };
    const terms = { currency: 'usd', billing_period: 'MONTHLY', billing_cadence: 'RECURRING', price_unit_type: 'FIAT' };
    return (await make('/prices', { entity_type: 'PLAN', entity_id, ...terms, ...usage, ...fields })).id;
  };
  const post = (fields: Fields) =>
    api.request('POST', '/subscriptions', {
      body: { external_customer_id: 'acme', plan_id: plan.id, currency: 'usd', billing_period: 'MONTHLY', ...fields },
    });
  const ofCalls = (commitment: Fields) => ({ line_item_commitments: { [price.calls!]: commitment } });
  const ofCpu = (commitment: Fields) => ({ line_item_commitments: { [price.cpu!]: commitment } });
  const added = (line: Fields) => ({ line_items: [{ price_id: price.other, ...line }] });
  const MORNING = { start: { hour: 9 }, end: { hour: 12 }, commitment_value: '5' };

  const accepted: [string, () => Fields, Fields][] = [
    [
      'of the subscription',
      () => ({ commitment_amount: 500, overage_factor: '1.2', enable_true_up: true, commitment_duration: 'annual' }),
      { commitment_amount: '500', overage_factor: '1.2', enable_true_up: true, commitment_duration: 'ANNUAL' },
    ],
    [
      'of the subscription, without a factor',
      () => ({ commitment_amount: '500' }),
      { commitment_amount: '500', overage_factor: '1', enable_true_up: false, commitment_duration: null },
    ],
    [
      'zeros ask for nothing',
      () => ({
        commitment_amount: '0',
        overage_factor: '1',
        ...added({ commitment_amount: 0, commitment_quantity: '' }),
      }),
      { commitment_amount: null, overage_factor: null },
    ],
  ];
  for (const [title, fields, said] of accepted)
    it(`201: ${title}`, async () => {
      const answer = await post(fields());
      expect(answer.status, answer.text).to.equal(201);
      expect(answer.body).to.deep.include(said);
    });

  it('201: of an added line, in the names that the line has', async () => {
    const line = {
      commitment_quantity: 10,
      commitment_type: 'QUANTITY',
      commitment_overage_factor: 2,
      commitment_true_up_enabled: true,
      commitment_duration: 'QUARTERLY',
    };
    const { line_items } = (await post(added(line))).body;
    expect(line_items.at(-1)).to.deep.include({
      price_id: price.other,
      commitment_amount: null,
      commitment_quantity: '10',
      commitment_type: 'quantity',
      commitment_overage_factor: '2',
      commitment_true_up_enabled: true,
      commitment_windowed: false,
      commitment_duration: 'QUARTERLY',
      commitment_time_buckets: null,
    });
  });

  it('201: times of day make a price of the line’s own, whether stated of a plan’s line, an added one or an override', async () => {
    const commitment_time_buckets = [MORNING];
    const stated: [Fields, string, number][] = [
      [ofCpu({ is_window_commitment: true, commitment_time_buckets }), price.cpu!, 1],
      [added({ commitment_windowed: true, commitment_time_buckets }), price.other!, -1],
      [{ override_line_items: [{ price_id: price.cpu, commitment_time_buckets }] }, price.cpu!, 1],
    ];
    for (const [fields, root, at] of stated) {
      const answer = await post(fields);
      expect(answer.status, answer.text).to.equal(201);
      const line = answer.body.line_items.at(at);
      expect(line!.price).to.include({ parent_price_id: root, entity_type: 'SUBSCRIPTION', entity_id: answer.body.id });
      expect(line).to.include({ commitment_windowed: true, commitment_type: null });
      expect(line!.commitment_time_buckets![0]).to.deep.include({
        end: { hour: 12, minute: 0 },
        commitment_value: '5',
      });
      expect(line!.commitment_time_buckets).to.deep.equal(line!.price!.commitment_time_buckets);
    }
  });

  const amount = { commitment_amount: '100' };
  const refused: [string, () => Fields, string][] = [
    ['less than nothing', () => ({ commitment_amount: '-1' }), 'commitment_amount'],
    ['a factor below 1', () => ({ ...amount, overage_factor: '0.9' }), 'overage_factor'],
    ['a factor of nothing', () => ({ overage_factor: '2' }), 'overage_factor'],
    ['a true-up of nothing', () => ({ enable_true_up: true }), 'enable_true_up'],
    ['a term of nothing', () => ({ commitment_duration: 'ANNUAL' }), 'commitment_duration'],
    ['a term below a period', () => ({ ...amount, commitment_duration: 'WEEKLY' }), 'commitment_duration'],
    ['both levels, on an added line', () => ({ ...amount, ...added(amount) }), 'line_items[0].commitment_amount'],
    [
      'both levels, by times of day',
      () => ({ ...amount, override_line_items: [{ price_id: price.cpu, commitment_time_buckets: [MORNING] }] }),
      'override_line_items[0].commitment_time_buckets',
    ],
    ['money and units', () => added({ ...amount, commitment_quantity: '5' }), 'line_items[0].commitment_quantity'],
    ['another type', () => added({ ...amount, commitment_type: 'quantity' }), 'line_items[0].commitment_type'],
    ['negative money', () => added({ commitment_amount: '-5' }), 'line_items[0].commitment_amount'],
    ['a true-up alone', () => added({ commitment_true_up_enabled: true }), 'line_items[0].commitment_amount'],
    [
      'a factor below 1 of a line',
      () => added({ ...amount, commitment_overage_factor: '0.5' }),
      'line_items[0].commitment_overage_factor',
    ],
    [
      'a term below the period of a line',
      () => added({ ...amount, commitment_duration: 'DAILY' }),
      'line_items[0].commitment_duration',
    ],
    [
      'a term of windows',
      () => added({ ...amount, commitment_windowed: true, commitment_duration: 'ANNUAL' }),
      'line_items[0].commitment_duration',
    ],
    [
      'times of day without windows',
      () => added({ commitment_time_buckets: [MORNING] }),
      'line_items[0].commitment_time_buckets',
    ],
    ['a type that is none', () => added({ ...amount, commitment_type: 'money' }), 'line_items[0].commitment_type'],
  ];
  for (const [title, fields, field] of refused)
    it(`400: ${title}`, async () => {
      const answer = await post(fields());
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body).to.deep.include({ code: 'validation_error' });
      expect(answer.body.details!.field).to.equal(field);
    });

  it('400: of a line that is not measured, of a meter without windows, of a price that is not of the plan, of both levels', async () => {
    const field = async (fields: Fields) => (await post(fields)).body.details!.field;
    const windows = { ...amount, is_window_commitment: true };
    expect(await field({ line_item_commitments: { [price.seats!]: amount } })).to.equal(
      `line_item_commitments.${price.seats}.commitment_amount`,
    );
    expect(await field({ ...amount, ...ofCalls(amount) })).to.equal(`line_item_commitments.${price.calls}`);
    expect(await field(ofCalls(windows))).to.equal(`line_item_commitments.${price.calls}.commitment_windowed`);
    expect(await field({ line_item_commitments: { [price.other!]: amount } })).to.equal(
      `line_item_commitments.${price.other}`,
    );
  });

  it('400: times of day that lie in one another, on the field of the request', async () => {
    const commitment_time_buckets = [MORNING, { ...MORNING, start: { hour: 11 } }];
    const answer = await post(ofCpu({ is_window_commitment: true, commitment_time_buckets }));
    expect(answer.status).to.equal(400);
    expect(answer.body.details!.field).to.equal('commitment_time_buckets[1].start');
  });
});
