/** What is granted bit by bit, at every door, by numbers that were counted by hand (docs/rules/entitlements.md, "Grants"). */
import { expect } from 'chai';
import type { Entitlement, Feature } from '../support/answers.ts';
import { expectGolden } from '../support/golden.ts';
import { provenBy, check as verified } from '../support/verifier.ts';
import { startWorld, summarizeInvoice, tiers, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const at = (time: string) => `2026-${time}:00Z`;
/** 255 on the tenth, 150 in the last hours of January, 150 as February begins. */
const USED: readonly [string, number][] = [
  ['01-10T08:00', 60],
  ['01-10T10:00', 70],
  ['01-10T12:59', 5],
  ['01-10T13:00', 20],
  ['01-10T18:00', 100],
  ['01-31T22:00', 150],
  ['02-01T00:00', 150],
];

const FIVE_HOURS = {
  grant_measure: 'quantity',
  grant_quota: '100',
  grant_duration_value: 5,
  grant_duration_unit: 'hour',
};
/** What the plan of each name grants of calls, and its subscription besides. */
const GRANTED: Record<string, Fields[]> = {
  Rolling: [FIVE_HOURS],
  Aligned: [
    {
      ...FIVE_HOURS,
      grant_quota: '10',
      grant_duration_value: 1,
      grant_duration_unit: 'day',
      grant_allocation_behavior: 'unit_start',
    },
  ],
  Period: [{ grant_measure: 'quantity', grant_quota: '50', grant_duration_unit: 'subscription_period' }],
  Parallel: [
    { ...FIVE_HOURS, aggregation_mode: 'parallel' },
    {
      ...FIVE_HOURS,
      grant_quota: '250',
      grant_duration_value: 1,
      grant_duration_unit: 'week',
      aggregation_mode: 'parallel',
    },
  ],
  Additive: [FIVE_HOURS, { ...FIVE_HOURS, grant_quota: '50', grant_duration_value: 24 }],
  Money: [
    {
      grant_measure: 'amount',
      grant_quota: '30',
      grant_duration_value: 1,
      grant_duration_unit: 'day',
      grant_allocation_behavior: 'unit_start',
    },
  ],
};
const NAMES = Object.keys(GRANTED);

/** Units charged, units free, and the amount: of January, and of February. */
const CHARGED: Record<string, [string, string | null, string][]> = {
  // 135 from 08:00 to 13:00, 20 until 18:00, 100 until 23:00; 150 until the month ends, and 150 of a new one.
  Rolling: [
    ['85', '320', '170'],
    ['50', '100', '100'],
  ],
  // 255 of one day, 150 of another.
  Aligned: [
    ['385', '20', '770'],
    ['140', '10', '280'],
  ],
  Period: [
    ['355', '50', '710'],
    ['100', '50', '200'],
  ],
  // 35 above the first five hours; 5 more at 18:00, where the week comes to 255; 50 in the last hours, in another week.
  Parallel: [
    ['90', '315', '180'],
    ['50', '100', '100'],
  ],
  // 100 + 35 in the first five hours, and so the 24 hours have 15 left; 100 + 50 fit in each of the last two.
  Additive: [
    ['0', '405', '0'],
    ['0', '150', '0'],
  ],
  // The first 10 units cost 3, the others 1: 275 on the tenth and 150 on the last day, each less 30; 170 less 30.
  Money: [
    ['405', null, '365'],
    ['150', null, '140'],
  ],
};

describe('scenario: granted bit by bit', () => {
  let world: World;
  let feature: Feature;
  const entitlements: Record<string, Entitlement[]> = {};

  const check = (customer: string, quantity: string, hold: Fields | null = null) =>
    world.post('/entitlements/check', { external_customer_id: customer, feature_id: feature.id, quantity, hold });
  const used = async (customer: string) => {
    const { features } = await world.get(`/customers/usage?customer_lookup_key=${customer}`);
    return features.map(({ total_limit, current_usage, usage_percent, next_usage_reset_at, grants }) => ({
      total_limit,
      current_usage,
      usage_percent,
      next_usage_reset_at,
      grants: grants!.map(({ grant_measure: _, ...grant }) => Object.values(grant).join(' ')),
    }));
  };
  const lines = async (customer: string) =>
    (await world.invoices(customer)).flatMap(({ line_items }) =>
      line_items.map((line) => [line.quantity, line.adjusted_entitlement_quantity, line.amount]),
    );

  before(async () => {
    world = await startWorld();
    const calls = await world.meter('calls');
    feature = await world.post('/features', {
      name: 'Calls',
      lookup_key: 'calls',
      type: 'metered',
      meter_id: calls.id,
    });
    await world.on('2026-01-01');
    for (const [name, [ofPlan, ...own]] of Object.entries(GRANTED)) {
      const slabs: [number | null, string][] = [
        [10, '3'],
        [null, '1'],
      ];
      const price = name === 'Money' ? tiers('calls', slabs) : usage('calls', '2');
      await world.plan(name, [{ ...price, display_name: 'calls' }]);
      const { id } = await world.subscribe(name, name);
      const grant = (entity_type: string, entity_id: string, fields: Fields) =>
        world.post('/entitlements', {
          entity_type,
          entity_id,
          feature_id: feature.id,
          feature_type: 'metered',
          ...fields,
        });
      entitlements[name] = [await grant('PLAN', world.id(`plan ${name}`), ofPlan!)];
      for (const fields of own) entitlements[name]!.push(await grant('SUBSCRIPTION', id, fields));
    }
  });
  after(() => world.stop());

  it('nothing is opened before anything is used, but the period itself', async () => {
    expect(await used('Rolling')).to.deep.equal([
      {
        total_limit: 100,
        current_usage: '0',
        usage_percent: '0',
        next_usage_reset_at: at('02-01T00:00'),
        grants: ['100 0 active  '],
      },
    ]);
    const period = `50 0 active ${at('01-01T00:00')} ${at('02-01T00:00')}`;
    expect((await used('Period'))[0]!.grants).to.deep.equal([period]);
    expect(await check('Rolling', '101')).to.deep.include({
      allowed: false,
      reason: 'limit_reached',
      remaining: '100',
    });
    expect(await check('Rolling', '100')).to.deep.include({ allowed: true, reason: 'within_limit' });
    // The first 10 units cost 30.
    expect(await check('Money', '11')).to.deep.include({ allowed: false, limit: '30', remaining: '30' });
    expect(await check('Money', '10')).to.deep.include({ allowed: true });
  });

  it('of what lasts, what was used and what is left', async () => {
    for (const name of NAMES)
      await world.send(USED.slice(0, 5).map(([time, n]) => world.event(name, 'calls', { n, at: at(time) })));
    await world.waitForPipeline();
    world.at(at('01-10T19:00'));
    const told: Record<string, unknown> = {};
    for (const name of NAMES) told[name] = await used(name);
    const until = (time: string) => at(`01-${time}`);
    const told_of = (
      total_limit: number,
      current_usage: string,
      usage_percent: string,
      reset: string,
      grants: string[],
    ) => ({
      total_limit,
      current_usage,
      usage_percent,
      next_usage_reset_at: until(reset),
      grants,
    });
    const five = `100 100 exhausted ${until('10T18:00')} ${until('10T23:00')}`;
    expect(told).to.deep.equal({
      Rolling: [told_of(100, '100', '100', '10T23:00', [five])],
      Aligned: [told_of(10, '255', '2550', '11T00:00', [`10 10 exhausted ${until('10T00:00')} ${until('11T00:00')}`])],
      Period: [
        {
          ...told_of(50, '255', '510', '10T00:00', [`50 50 exhausted ${until('01T00:00')} ${at('02-01T00:00')}`]),
          next_usage_reset_at: at('02-01T00:00'),
        },
      ],
      Parallel: [
        told_of(100, '100', '100', '10T23:00', [five]),
        told_of(250, '255', '102', '17T08:00', [`250 250 exhausted ${until('10T08:00')} ${until('17T08:00')}`]),
      ],
      Additive: [
        told_of(150, '135', '90', '10T23:00', [five, `50 35 active ${until('10T08:00')} ${until('11T08:00')}`]),
      ],
      Money: [told_of(30, '275', '916.67', '11T00:00', [`30 30 exhausted ${until('10T00:00')} ${until('11T00:00')}`])],
    });
    const left: Record<string, unknown> = {};
    for (const name of NAMES) left[name] = (await check(name, '1')).remaining;
    expect(left).to.deep.equal({ Rolling: '0', Aligned: '0', Period: '0', Parallel: '0', Additive: '15', Money: '0' });
    expect((await check('Additive', '16')).allowed).to.equal(false);
    expect((await check('Additive', '15')).allowed).to.equal(true);
  });

  it('is held and committed as any limit, and what was committed counts before the pipeline has it', async () => {
    await world.subscribe('holder', 'Rolling');
    expect((await check('holder', '60', { ttl_seconds: 600 })).allowed).to.equal(true);
    expect(await check('holder', '41')).to.deep.include({ allowed: false, held: '60', remaining: '40' });
    const { reservation } = await check('holder', '40', { ttl_seconds: 600 });
    await world.pausePipeline();
    await world.post(`/reservations/${reservation!.id}/commit`, { quantity: '30' });
    expect(await check('holder', '11')).to.deep.include({ allowed: false, used: '30', held: '60', remaining: '10' });
    await world.resumePipeline();
    await world.waitForPipeline();
    expect(await check('holder', '11')).to.deep.include({ allowed: false, used: '30', held: '60', remaining: '10' });
    expect(await check('holder', '10')).to.deep.include({ allowed: true });
    expect((await used('holder'))[0]!.grants).to.deep.equal([
      `100 30 active ${at('01-10T19:00')} ${at('01-11T00:00')}`,
    ]);
  });

  it('begins anew where a grant has ended, and money goes by what more units would cost', async () => {
    world.at(at('01-11T00:00'));
    expect(await check('Rolling', '100')).to.deep.include({ allowed: true, used: '0' });
    // 10 units have had the higher price already this month.
    expect(await check('Money', '31')).to.deep.include({ allowed: false, used: '0', remaining: '30' });
    expect(await check('Money', '30')).to.deep.include({ allowed: true });
    expect((await check('Parallel', '1')).limits.map(({ remaining }) => remaining)).to.deep.equal(['100', '0']);
  });

  it('at the doors of the running period', async () => {
    for (const name of NAMES)
      await world.send(USED.slice(5).map(([time, n]) => world.event(name, 'calls', { n, at: at(time) })));
    await world.waitForPipeline();
    world.at(at('01-31T23:00'));
    for (const name of NAMES) {
      const [quantity, , amount] = CHARGED[name]![0]!;
      const { charges } = await world.post('/subscriptions/usage', {
        subscription_id: world.id(`subscription ${name}`),
      });
      const range = { start_time: at('01-01T00:00'), end_time: at('02-01T00:00'), external_customer_id: name };
      const { items } = await world.post('/events/analytics', range);
      const [line] = (await world.preview(name)).line_items;
      expect([charges[0]!.quantity, charges[0]!.amount], `usage of ${name}`).to.deep.equal([quantity, amount]);
      expect([line!.quantity, line!.amount], `preview of ${name}`).to.deep.equal([quantity, amount]);
      expect([items[0]!.total_usage, items[0]!.total_cost], `analytics of ${name}`).to.deep.equal(['405', amount]);
    }
    const range = { start_time: at('01-01T00:00'), end_time: at('02-01T00:00'), external_customer_id: 'Rolling' };
    const { items } = await world.post('/events/analytics', { ...range, window_size: '6HOUR' });
    // 60, 75 and 20, 100, 150 units in quarters of days.
    expect(items[0]!.points!.map(({ cost }) => cost)).to.deep.equal(['60', '10', '0', '100']);
  });

  it('on invoices, with a proof that whoever gets them can check', async () => {
    const previews: Record<string, ReturnType<typeof summarizeInvoice>> = {};
    for (const name of NAMES) previews[name] = summarizeInvoice(await world.preview(name));
    await world.on('2026-02-01');
    for (const name of NAMES)
      expect(summarizeInvoice((await world.invoices(name))[0]!), name).to.deep.equal(previews[name]);
    await world.finalize();
    await world.on('2026-03-01');
    const said: Record<string, unknown> = {};
    for (const name of NAMES) said[name] = await lines(name);
    expect(said).to.deep.equal(CHARGED);
    for (const name of NAMES) {
      const proven = await provenBy(world.api, (await world.invoices(name))[0]!.id);
      const { differences, stated } = await verified(proven);
      expect(differences, name).to.deep.equal([]);
      expect(stated.map(({ what }) => what).join()).to.include('in which stretches of time its grants make usage free');
    }
  });

  it('says on the line what it was computed from', async () => {
    const kept: Record<string, unknown> = {};
    for (const name of NAMES) {
      const { line_items } = (await world.invoices(name))[0]!;
      kept[name] = line_items[0]!.computed_from!.allowances;
    }
    expectGolden('grants-computed-from.json', JSON.stringify(kept, null, 2));
  });

  it('what comes late is looked at by the terms of then, in stretches of time that it may have begun', async () => {
    // From 05:00 to 10:00 it is 70, until 15:00 95, and nothing is above: 35 less than were charged.
    for (const name of ['Rolling', 'Additive'])
      await world.send([world.event(name, 'calls', { n: 10, at: at('01-10T05:00') })]);
    await world.waitForPipeline();
    const [of_plan] = entitlements.Rolling!;
    const changed = { grant_quota: '1' };
    expect((await world.api.request('PUT', `/entitlements/${of_plan!.id}`, { body: changed })).status).to.equal(200);
    await world.finalize();
    await world.on('2026-04-01');
    const march = ['0', '0', '0'];
    expect((await lines('Rolling')).slice(2)).to.deep.equal([['-35', null, '-70'], march]);
    expect((await lines('Additive')).slice(2)).to.deep.equal([march]);
  });
});
