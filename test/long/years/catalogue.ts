/** What is sold in the stories. */
import { fixed, type PriceTerms, tiers, usage, type World } from '../../support/world.ts';

/** Ids of what requests name that no method of the world knows. */
export type Sold = { readonly prices: Record<string, string>; readonly addons: Record<string, string> };

const SLABS: [number | null, string][] = [
  [100, '1'],
  [null, '0.5'],
];
const MANY: [number | null, string][] = [
  [1000, '0.01'],
  [null, '0.005'],
];

export async function catalogue(world: World): Promise<Sold> {
  const sold: Sold = { prices: {}, addons: {} };
  const ahead = (amount: string, display_name: string, fields: object = {}) =>
    fixed(amount, { invoice_cadence: 'ADVANCE', display_name, ...fields });
  const calls = (amount: string, display_name = 'calls') => usage('calls', amount, { display_name });
  const { id: meter_id } = await world.meter('calls');
  await world.meter('cpu', { type: 'SUM', field: 'n', bucket_size: 'HOUR' });
  const plans: Record<string, PriceTerms[]> = {
    Calls: [tiers('calls', MANY, { display_name: 'calls' })],
    Licence: [ahead('366', 'licence', { billing_period: 'ANNUAL' }), calls('0.01')],
    Pro: [ahead('30', 'seat'), ahead('100', 'set-up', { billing_period: 'ONETIME' }), calls('0.01')],
    Basic: [ahead('31', 'basic'), calls('0.01', 'basic calls')],
    Plus: [ahead('62', 'plus'), calls('0.02', 'plus calls')],
    Seats: [ahead('31', 'seat')],
    One: [calls('1')],
    Cpu: [usage('cpu', '1', { display_name: 'cpu' })],
    Slabs: [tiers('calls', SLABS, { display_name: 'calls' })],
    Team: [ahead('50', 'base'), tiers('calls', SLABS, { display_name: 'calls' })],
    Small: [ahead('7', 'small'), calls('2', 'small calls')],
    Base: [ahead('31', 'base')],
    Ramp: [ahead('31', 'seat'), ahead('100', 'set-up', { billing_period: 'ONETIME' }), calls('0.01')],
    Free: [calls('1')],
  };
  for (const [name, prices] of Object.entries(plans)) {
    await world.plan(name, []);
    for (const price of prices) sold.prices[`${name} ${price.display_name}`] = (await world.price(name, price)).id;
  }
  await addon(world, sold, 'Support', ahead('62', 'support'));
  await addon(world, sold, 'Audit', ahead('91', 'audit', { billing_period: 'QUARTERLY' }));
  const feature = await world.post('/features', { name: 'Calls', type: 'metered', meter_id });
  await world.post('/entitlements', {
    entity_type: 'PLAN',
    entity_id: world.id('plan Free'),
    feature_id: feature.id,
    feature_type: 'metered',
    usage_limit: 50,
    usage_reset_period: 'QUARTERLY',
  });
  return sold;
}

async function addon(world: World, { addons }: Sold, name: string, price: PriceTerms): Promise<void> {
  const { id } = await world.post('/addons', { name, lookup_key: name, type: 'multiple_instance' });
  const common = { entity_type: 'ADDON', entity_id: id, currency: 'usd', billing_period: 'MONTHLY' };
  await world.post('/prices', { ...common, price_unit_type: 'FIAT', start_date: '2020-01-01T00:00:00Z', ...price });
  addons[name] = id;
}
