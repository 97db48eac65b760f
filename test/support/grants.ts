/** Credits granted in a test world, past and future ones. */
import { fixed, startWorld, type World } from './world.ts';

export const MONTHLY = { cadence: 'RECURRING', period: 'MONTHLY', period_count: 1 };

/** Lists the credits in all wallets of the customer as `2026-02-01 100 until 2026-03-01`, oldest first. */
export async function credits(world: World, customer: string): Promise<string[]> {
  const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
  const all = await Promise.all(
    wallets.map(async ({ id }) => (await world.get(`/wallets/${id}/transactions?limit=1000`)).items),
  );
  return all
    .flat()
    .filter(({ type }) => type === 'credit')
    .sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1))
    .map(({ created_at, credit_amount, expiry_date }) => {
      const until = expiry_date ? ` until ${short(expiry_date)}` : '';
      return `${short(created_at)} ${Number(credit_amount)}${until}`;
    });
}

export function short(timestamp: string): string {
  const iso = new Date(timestamp).toISOString();
  return iso.endsWith('T00:00:00.000Z') ? iso.slice(0, 10) : iso.slice(0, 16);
}

export async function upcoming(world: World, customer: string): Promise<string[]> {
  const id = world.id(`subscription ${customer}`);
  const { items } = await world.get(`/subscriptions/${id}/grants/upcoming`);
  return items.map(
    ({ scheduled_for, credits: amount, application_status }) =>
      `${short(scheduled_for)} ${Number(amount)} ${application_status}`,
  );
}

export function grant(world: World, plan: string, fields: Record<string, unknown>) {
  const plan_id = world.id(`plan ${plan}`);
  return world.post('/creditgrants', { name: 'Credits', scope: 'PLAN', plan_id, credits: '100', ...fields });
}

export async function grantOwn(world: World, customer: string, fields: Record<string, unknown>) {
  const subscription_id = world.id(`subscription ${customer}`);
  return world.post('/creditgrants', { name: 'Own', scope: 'SUBSCRIPTION', subscription_id, credits: '10', ...fields });
}

/**
 * Starts a world with a test clock and three plans. Pro grants credits monthly and at once, Basic grants them at
 * another rate, and Bare grants none.
 */
export async function startGrantsWorld(): Promise<World> {
  const world = await startWorld({ now: '2026-01-01T00:00:00Z', test_clock: true });
  for (const name of ['Pro', 'Basic', 'Bare'])
    await world.plan(name, [fixed('10', { invoice_cadence: 'ADVANCE', display_name: name })]);
  await grant(world, 'Pro', { ...MONTHLY, expiration_type: 'BILLING_CYCLE', priority: 3 });
  await grant(world, 'Pro', { credits: '50', cadence: 'ONETIME', name: 'Welcome' });
  await grant(world, 'Basic', { ...MONTHLY, credits: '20', conversion_rate: '0.5' });
  return world;
}
