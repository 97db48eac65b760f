/** Grants of money where more usage lowers the charge, and grants in a short first period (docs/rules/entitlements.md, "Grants"). */
import { expect } from 'chai';
import type { Feature } from '../support/answers.ts';
import { startWorld, tiers, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const OF_A_DAY = { grant_duration_value: 1, grant_duration_unit: 'day' };
const OF_THE_PERIOD = { grant_duration_unit: 'subscription_period' };

describe('scenario: grants of money and of short periods', () => {
  let world: World;
  let feature: Feature;
  const charged = async (name: string) => {
    await world.waitForPipeline();
    const [line] = (await world.preview(name)).line_items;
    return [line!.quantity, line!.amount];
  };
  const grant = (name: string, fields: Fields) =>
    world.post('/entitlements', {
      entity_type: 'PLAN',
      entity_id: world.id(`plan ${name}`),
      feature_id: feature.id,
      feature_type: 'metered',
      ...fields,
    });

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { id } = await world.meter('calls');
    feature = await world.post('/features', { name: 'Calls', lookup_key: 'calls', type: 'metered', meter_id: id });
    const slabs: [number | null, string][] = [
      [100, '1'],
      [null, '0.5'],
    ];
    for (const [name, fields] of Object.entries({ Day: OF_A_DAY, Period: OF_THE_PERIOD })) {
      await world.plan(name, [tiers('calls', slabs, { tier_mode: 'VOLUME' })]);
      await grant(name, { grant_measure: 'amount', grant_quota: '30', ...fields });
      await world.subscribe(name, name);
    }
    await world.plan('Units', [usage('calls', '1')]);
    await grant('Units', { grant_measure: 'quantity', grant_quota: '1000', ...OF_THE_PERIOD });
  });
  after(() => world.stop());

  it('with volume tiers usage that lowers the charge lowers what is covered', async () => {
    world.at('2026-01-10');
    const said: string[][] = [];
    for (const [day, n] of [
      ['02', 100],
      ['03', 10],
      ['04', 50],
    ] as const) {
      for (const name of ['Day', 'Period']) await world.use(name, 'calls', n, { at: `2026-01-${day}T10:00:00Z` });
      said.push([...(await charged('Day')), ...(await charged('Period'))]);
    }
    expect(said).to.deep.equal([
      ['100', '70', '100', '70'],
      ['110', '55', '110', '25'],
      ['160', '70', '160', '50'],
    ]);
  });

  it('one of the period is whole in a short first one', async () => {
    await world.on('2026-05-20', () => world.subscribe('short', 'Units', { billing_cycle: 'calendar' }));
    await world.use('short', 'calls', 1500, { at: '2026-05-21T00:00:00Z' });
    world.at('2026-05-25');
    expect(await charged('short')).to.deep.equal(['500', '500']);
  });
});
