/** Random usage prices for the pages of the console, repeatable by their seed. */
import { createChance } from './seeds.ts';

/** The body of a price: per unit, by package, graduated or by volume. */
export function drawPrice(seed: number, { plan_id, meter_id }: { plan_id: string; meter_id: string }): object {
  const chance = createChance(seed);
  const drawRate = () => `0.0000${chance.whole(1, 99_999)}`;
  const bounds = [chance.whole(1, 500_000), chance.whole(500_001, 1_200_000)];
  const tiers = [...bounds, null].map((up_to) => ({
    up_to,
    unit_amount: drawRate(),
    ...(chance.next() < 0.5 ? { flat_amount: `${chance.whole(0, 99)}.5` } : {}),
  }));
  const models = [
    { billing_model: 'FLAT_FEE', amount: drawRate() },
    {
      billing_model: 'PACKAGE',
      amount: '0.37',
      transform_quantity: { divide_by: chance.whole(2, 9_999), round: 'up' },
    },
    { billing_model: 'TIERED', tier_mode: 'SLAB', tiers },
    { billing_model: 'TIERED', tier_mode: 'VOLUME', tiers },
  ];
  return {
    ...models[seed % models.length],
    entity_type: 'PLAN',
    entity_id: plan_id,
    meter_id,
    type: 'USAGE',
    display_name: `Price ${seed}`,
    currency: 'usd',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ARREAR',
  };
}
