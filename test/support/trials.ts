/** Plans with trials, and the state of the subscriptions that try them. */
import { expect } from 'chai';
import type { Subscription } from './answers.ts';
import { fixed, startWorld, usage, type World } from './world.ts';

/** Pro has a setup fee, Tried has a trial of 14 days, and Free charges usage only. */
export async function startTrialsWorld(): Promise<World> {
  const world = await startWorld();
  await world.meter('calls');
  await world.plan('Pro', [
    fixed('30', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
    fixed('100', { invoice_cadence: 'ADVANCE', billing_period: 'ONETIME', display_name: 'setup' }),
    usage('calls', '0.01'),
  ]);
  await world.plan('Tried', [
    fixed('30', { invoice_cadence: 'ADVANCE', display_name: 'seat', trial_period_days: 14 }),
    usage('calls', '0.01'),
  ]);
  await world.plan('Free', [usage('calls', '0.01')]);
  return world;
}

/** Status, current period and billing anchor dates of a subscription. */
export const dates = ({
  subscription_status,
  current_period_start,
  current_period_end,
  billing_anchor,
}: Pick<Subscription, 'subscription_status' | 'current_period_start' | 'current_period_end' | 'billing_anchor'>) => [
  subscription_status,
  ...[current_period_start, current_period_end, billing_anchor].map((date) => new Date(date!).toISOString()),
];

/** Pays the newest invoice of the customer. */
export async function payNewest(world: World, customer: string): Promise<void> {
  const invoice = (await world.invoices(customer)).at(-1);
  const path = `/invoices/${invoice!.id}/payment` as const;
  const answer = await world.api.request('PUT', path, { body: { payment_status: 'SUCCEEDED' } });
  expect(answer.status, answer.text).to.equal(200);
}
