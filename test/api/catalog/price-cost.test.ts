/** POST /prices/cost: what quantities cost under a price, stored or not (docs/rules/pricing.md, "Cost of a quantity"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { samples } from '../../support/samples.ts';
import { fixed, type PriceTerms, startWorld, usage, type World } from '../../support/world.ts';

const SLABS = [
  { up_to: 1000, unit_amount: '0.10' },
  { up_to: null, unit_amount: '0.08', flat_amount: '5' },
];
const SLAB_PRICE = { type: 'USAGE', billing_model: 'TIERED', tier_mode: 'SLAB', currency: 'usd', tiers: SLABS };
const FLAT_PRICE = { type: 'USAGE', billing_model: 'FLAT_FEE', currency: 'usd', amount: '1' };

describe('/prices/cost', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.meter('hourly', { type: 'SUM', field: 'n', bucket_size: 'HOUR' });
    await world.plan('Pro', []);
  });
  after(() => world.stop());

  const ask = (body: unknown, key?: string | null) =>
    world.api.request('POST', '/prices/cost', key === undefined ? { body } : { body, key });
  const countPrices = () => world.api.services.postgres('prices').count();

  it('200: of a price that is not written: its lines, exact and rounded', async () => {
    const before = await countPrices();
    const answer = await ask({ price: SLAB_PRICE, quantities: [1000, '1000.05', '0'] });
    expect(answer.status, answer.text).to.equal(200);
    const first = { from: '0', up_to: '1000', quantity: '1000', unit_amount: '0.1', flat_amount: null, amount: '100' };
    const next = {
      from: '1000',
      up_to: null,
      quantity: '0.05',
      unit_amount: '0.08',
      flat_amount: '5',
      amount: '5.004',
    };
    expect(answer.body).to.deep.equal({
      currency: 'usd',
      items: [
        { quantity: '1000', amount: '100', amount_rounded: '100', lines: [first] },
        { quantity: '1000.05', amount: '105.004', amount_rounded: '105', lines: [first, next] },
        { quantity: '0', amount: '0', amount_rounded: '0', lines: [] },
      ],
    });
    expect(await countPrices()).to.deep.equal(before);
  });

  it('200: in a price unit, by the rate of the unit', async () => {
    const unit = { name: 'Credits', code: 'cr', symbol: 'c', base_currency: 'usd', conversion_rate: '0.02' };
    await world.post('/prices/units', unit);
    const price = { ...FLAT_PRICE, amount: null, price_unit_type: 'CUSTOM' };
    const answer = await ask({
      price: { ...price, price_unit_config: { price_unit: 'cr', amount: '4' } },
      quantities: ['35'],
    });
    expect(answer.body.items[0], answer.text).to.include({ amount: '2.8', amount_rounded: '2.8' });
  });

  it('200: of a stored price, also with times of day', async () => {
    const morning = { start: { hour: 9 }, end: { hour: 12 }, commitment_value: '50', true_up_enabled: true };
    const own = usage('hourly', '2', { commitment_time_buckets: [morning] });
    const { id: price_id } = await world.price('Pro', own);
    const timed = await ask({ price_id, quantities: ['3'], at: '2026-01-01T10:00:00Z' });
    expect(timed.body.items[0], timed.text).to.include({ amount: '50' });
    const untimed = await ask({ price_id, quantities: ['3'], at: '2026-01-01T12:00:00Z' });
    expect(untimed.body.items[0], untimed.text).to.include({ amount: '6' });
    expect((await ask({ price_id, quantities: ['3'] })).body).to.deep.include({ http_status_code: 400 });
    const meter_id = world.id('meter hourly');
    const unwritten = { ...FLAT_PRICE, amount: '2', meter_id, commitment_time_buckets: [morning] };
    const requested = await ask({ price: unwritten, quantities: ['3'], at: '2026-01-01T10:00:00Z' });
    expect(requested.body.items, requested.text).to.deep.equal(timed.body.items);
  });

  const faults: [string, object, string][] = [
    ['neither price', { quantities: ['1'] }, 'price_id'],
    ['both prices', { price_id: 'price_x', price: FLAT_PRICE, quantities: ['1'] }, 'price'],
    ['no quantity', { price: FLAT_PRICE, quantities: [] }, 'quantities'],
    ['more than 500', { price: FLAT_PRICE, quantities: Array(501).fill('1') }, 'quantities'],
    ['no number', { price: FLAT_PRICE, quantities: ['1', 'x'] }, 'quantities[1]'],
    ['a negative quantity', { price: FLAT_PRICE, quantities: ['1', '-1'] }, 'quantities[1]'],
    ['an unknown currency', { price: { ...FLAT_PRICE, currency: 'xyz' }, quantities: ['1'] }, 'price.currency'],
    ['no amount', { price: { ...FLAT_PRICE, amount: null }, quantities: ['1'] }, 'price.amount'],
    ['no open tier', { price: { ...SLAB_PRICE, tiers: [SLABS[0]] }, quantities: ['1'] }, 'price.tiers[0].up_to'],
    ['a minimum of usage', { price: { ...FLAT_PRICE, min_quantity: '1' }, quantities: ['1'] }, 'price.min_quantity'],
    [
      'less than the minimum',
      { price: { ...FLAT_PRICE, type: 'FIXED', min_quantity: '5' }, quantities: ['5', '4'] },
      'quantities[1]',
    ],
  ];
  for (const [name, body, field] of faults)
    it(`400: ${name}`, async () => {
      const answer = await ask(body);
      expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([400, field]);
    });

  it("401 without a key, 403 without the permission, 404 for another tenant's price", async () => {
    const { id: price_id } = await world.price('Pro', fixed('1'));
    const body = { price_id, quantities: ['1'] };
    expect((await ask(body, null)).status).to.equal(401);
    expect((await ask(body, await world.api.keyWithRoles(['event_ingestor']))).status).to.equal(403);
    expect((await ask(body, (await world.api.otherTenant()).key)).status).to.equal(404);
    expect((await ask(body, await world.api.keyWithRoles(['all_reader']))).status).to.equal(200);
  });

  const amounts = (places: number) => fc.integer({ min: 0, max: 5000 }).map((n) => (n / 10 ** places).toFixed(places));
  const bounds = fc.uniqueArray(fc.integer({ min: 1, max: 900 }), { maxLength: 3 });
  const terms = fc.oneof(
    fc.record({ billing_model: fc.constant('FLAT_FEE'), amount: amounts(4) }),
    fc.record({
      billing_model: fc.constant('PACKAGE'),
      amount: amounts(3),
      transform_quantity: fc.record({
        divide_by: fc.integer({ min: 1, max: 90 }),
        round: fc.constantFrom('up', 'down'),
      }),
    }),
    fc
      .record({
        tier_mode: fc.constantFrom('SLAB', 'VOLUME'),
        bounds,
        rates: fc.array(fc.tuple(amounts(5), fc.option(amounts(2))), { minLength: 4, maxLength: 4 }),
      })
      .map(({ tier_mode, bounds: ends, rates }) => ({
        billing_model: 'TIERED',
        tier_mode,
        tiers: [...ends, null].map((up_to, at) => ({ up_to, unit_amount: rates[at]![0], flat_amount: rates[at]![1] })),
      })),
  );
  let count = 0;

  it('equals the lines of an invoice, over random prices and quantities', async () => {
    const drawn = fc.record({
      prices: fc.array(terms, { minLength: 4, maxLength: 8 }),
      used: amounts(1),
      seats: fc.integer({ min: 1, max: 500 }),
    });
    await fc.assert(
      fc.asyncProperty(drawn, async ({ prices, used, seats }) => {
        const name = `random ${++count}`;
        const of = (fields: object): PriceTerms[] => [
          usage('calls', '', { amount: null, ...fields }),
          fixed('', { amount: null, min_quantity: String(seats), ...fields }),
        ];
        await world.plan(name, prices.flatMap(of));
        await world.subscribe(name, name);
        await world.use(name, 'calls', used);
        const { line_items } = await world.preview(name);
        expect(line_items.length).to.equal(2 * prices.length);
        for (const line of line_items) {
          const quantity = line.price_type === 'FIXED' ? String(seats) : used;
          const { items } = await world.post('/prices/cost', { price_id: line.price_id!, quantities: [quantity] });
          expect(items[0]!.amount_rounded, JSON.stringify(line)).to.equal(line.amount);
        }
        const unwritten = await world.post('/prices/cost', {
          price: { ...prices[0], type: 'USAGE', currency: 'usd' },
          quantities: [used],
        });
        const [first] = line_items.filter(({ price_type }) => price_type === 'USAGE');
        expect(unwritten.items[0]!.amount_rounded).to.equal(first!.amount);
      }),
      { numRuns: samples(12) },
    );
  });
});
