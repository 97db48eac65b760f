/**
 * Cost points of usage analytics add up to the exact cost of the range (docs/rules/usage.md, "Analytics"): for every price model and
 * aggregation, with free units and commitments, by any window, grouped and filtered.
 */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Analytics, AnalyticsItem } from '../../support/answers.ts';
import { type PriceTerms, startWorld, tiers, usage, type World } from '../../support/world.ts';

const PRICES: Record<string, (meter: string) => PriceTerms> = {
  flat: (meter) => usage(meter, '0.003999'),
  package: (meter) =>
    usage(meter, '0.0333', { billing_model: 'PACKAGE', transform_quantity: { divide_by: 4, round: 'up' } }),
  slab: (meter) =>
    tiers(meter, [
      [10, '1'],
      [null, '0.5', '3'],
    ]),
  volume: (meter) => ({
    ...tiers(meter, [
      [12, '1'],
      [null, '0.4'],
    ]),
    tier_mode: 'VOLUME',
  }),
};
const METERS: Record<string, Record<string, unknown>> = {
  sum: { type: 'SUM', field: 'n' },
  count: { type: 'COUNT' },
  max: { type: 'MAX', field: 'n' },
  latest: { type: 'LATEST', field: 'n' },
  avg: { type: 'AVG', field: 'n' },
  unique: { type: 'COUNT_UNIQUE', field: 'user' },
  level: { type: 'WEIGHTED_SUM', field: 'n' },
  daily: { type: 'SUM', field: 'n', bucket_size: 'DAY' },
  peaks: { type: 'MAX', field: 'n', bucket_size: 'DAY' },
};
const march = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };

describe('events: points of analytics', () => {
  let world: World;

  async function items(body: object) {
    const answer = await world.api.request('POST', '/events/analytics', { body: { ...march, ...body } });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.items;
  }
  const isBilled = ({ price_id }: AnalyticsItem) => price_id !== null;
  const costs = (one: AnalyticsItem): string[] => one.points!.map(({ cost }) => cost!);

  function expectSum(one: AnalyticsItem, name: string): void {
    const sum = sumDecimals(costs(one).map((cost) => new Decimal(cost)));
    expect(sum.toFixed(), `${name}: ${costs(one).join(' + ')}`).to.equal(new Decimal(one.total_cost!).toFixed());
  }

  /** Names of price models, by the id of the subscription. */
  const models = new Map<string, string>();
  /** Each price model has eleven lines, also for grouped and filtered usage. */
  function expectSums(all: readonly AnalyticsItem[], what: string): void {
    const lines = all.map(({ subscription_id, event_name }) => `${models.get(subscription_id!)} ${event_name}`);
    for (const model of models.values())
      expect(new Set(lines.filter((line) => line.startsWith(`${model} `)))).to.have.property('size', 11);
    for (const [index, one] of all.entries()) expectSum(one, `${lines[index]} ${what}`);
  }

  before(async () => {
    world = await startWorld({ now: '2026-02-01T00:00:00Z' });
    for (const [name, aggregation] of Object.entries(METERS)) await world.meter(name, aggregation);
    await world.meter('standing', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('users', { type: 'COUNT_UNIQUE', field: 'user' }, { reset_usage: 'NEVER' });
    for (const [model, price] of Object.entries(PRICES)) {
      await world.plan(
        model,
        [...Object.keys(METERS), 'standing', 'users'].map((meter) => price(meter)),
      );
      // One customer with a subscription to each plan: a question reads all of them with as many statements as one.
      models.set((await world.subscribe('all', model)).id, model);
    }
    const sum = (await world.get('/meters')).items.find(({ name }) => name === 'sum');
    const feature = await world.post('/features', { name: 'Sum', type: 'metered', meter_id: sum!.id });
    await world.plan('free', [usage('sum', '0.07')]);
    await world.post('/entitlements', {
      entity_type: 'PLAN',
      entity_id: world.id('plan free'),
      feature_id: feature.id,
      feature_type: 'metered',
      usage_limit: 11,
    });
    await world.subscribe('free', 'free');
    const committed = async (name: string, meter: string, stated: object) => {
      await world.plan(name, []);
      const { id } = await world.price(name, usage(meter, '1'));
      await world.subscribe(name, name, { line_item_commitments: { [id]: stated } });
    };
    const terms = { overage_factor: '1.5', enable_true_up: true };
    await committed('above', 'sum', { commitment_amount: '9.5', ...terms });
    await committed('below', 'sum', { commitment_amount: '100', ...terms });
    await committed('windowed', 'daily', { commitment_amount: '5', ...terms, is_window_commitment: true });
    world.at('2026-03-20');
    const used: [at: string, n: string, user: string][] = [
      ['02-27T08:00', '4', 'ann'],
      ['03-02T01:00', '3', 'ann'],
      ['03-02T10:00', '5', 'bob'],
      ['03-05T00:00', '0.5', 'ann'],
      ['03-09T12:30', '7', 'eve'],
      ['03-09T23:59', '-2', 'bob'],
      ['03-18T06:00', '1.25', 'joe'],
    ];
    const customers = ['all', 'free', 'above', 'below', 'windowed'];
    const names = [...Object.keys(METERS), 'standing', 'users'];
    await world.send(
      customers.flatMap((customer) =>
        names.flatMap((name) =>
          used.map(([at, n, user], index) => ({
            ...world.event(customer, name, { n, at: `2026-${at}:00Z` }),
            properties: { n, user },
            source: index % 2 === 0 ? 'web' : 'app',
          })),
        ),
      ),
    );
    await world.waitForPipeline();
  });
  after(() => world.stop());

  for (const window_size of ['HOUR', 'DAY', 'WEEK', 'MONTH'])
    it(`add up to the range by ${window_size}, with every price of every meter`, async () => {
      const all = await items({ external_customer_id: 'all', window_size });
      expect(all).to.have.length(4 * 11);
      expectSums(all, window_size);
    });

  it('of a range that begins inside of a window, and of grouped and filtered usage', async () => {
    const part = { start_time: '2026-03-02T05:30:00Z', end_time: '2026-03-18T06:30:00Z', window_size: 'DAY' };
    for (const body of [part, { ...part, group_by: ['source'] }, { ...part, sources: ['web'] }])
      expectSums(await items({ external_customer_id: 'all', ...body }), JSON.stringify(body));
  });

  it('of free units, of a commitment that is passed, of one that is not, and of one of each window', async () => {
    const answers = new Map<string, Analytics['items']>();
    for (const external_customer_id of ['free', 'above', 'below', 'windowed'])
      for (const window_size of ['HOUR', 'DAY', 'WEEK']) {
        const all = await items({ external_customer_id, window_size });
        for (const one of all) expectSum(one, external_customer_id);
        answers.set(`${external_customer_id} ${window_size}`, all);
      }
    const below = answers.get('below WEEK')!.find(isBilled)!;
    // 14.75 are used; the rest of 100 falls due with the last window
    expect(costs(below).at(-1)).to.equal('85.25');
    expect(below!.commitment_info!.computed_true_up_amount).to.equal('85.25');
    const windowed = answers.get('windowed DAY')!.find(isBilled)!;
    // 8 on the 2nd: 5 and 3 × 1.5; every day without usage that is over lacks 5
    expect(costs(windowed).slice(0, 4)).to.deep.equal(['5', '9.5', '5', '5']);
  });

  it('amounts are exact: 31 points of 0.003999, and what a day added', async () => {
    const all = await items({ external_customer_id: 'all', window_size: 'DAY' });
    const one = (model: string, name: string) =>
      all.find(({ subscription_id, event_name }) => models.get(subscription_id!) === model && event_name === name);
    const flat = one('flat', 'count');
    expect([flat!.total_cost, costs(flat!)[0]]).to.deep.equal(['0.023994', '0.007998']); // 6 and 2 × 0.003999
    // The tiers are ten at $1, then $3 once and $0.50 each: 8; 0.5; 1.5 + 3 + 1.75 for 13.5 in all; …
    expect(costs(one('slab', 'sum')!)).to.deep.equal(['8', '0.5', '6.25', '0.625']);
    // Distinct users: ann and bob, nobody new, eve, joe
    expect(costs(one('volume', 'unique')!)).to.deep.equal(['2', '0', '1', '1']);
    // A maximum of 5, then of 7
    expect(costs(one('volume', 'max')!)).to.deep.equal(['5', '0', '2', '0']);
    // The meter that never resets stood at 4 when the range began: its first window has that, too
    expect(costs(one('slab', 'standing')!)).to.deep.equal(['14', '0.25', '2.5', '0.625']);
    expect(one('slab', 'sum')!.points![2]!.usage).to.equal('5');
  });
});
