/**
 * Openings whose charge fails after their request was answered (docs/rules/payments.md, "Openings", "Tried again"): tried by one schedule,
 * whatever the subscription is to be until it is paid.
 */
import { expect } from 'chai';
import { fixed, startWorld, type World } from '../support/world.ts';

const BEHAVIORS = ['default_active', 'allow_incomplete', 'error_if_incomplete'];
/** The first try ends three days later, or when nobody has confirmed it for a day. */
const METHODS = { fails_late: 3, requires_action: 1 };
/** What the customer would have to confirm is refused with the request. */
const isRefused = (behavior: string, method: string) =>
  behavior === 'error_if_incomplete' && method === 'requires_action';
const CASES = Object.entries(METHODS).flatMap(([method, takes]) =>
  BEHAVIORS.filter((behavior) => !isRefused(behavior, method)).map((behavior) => ({ behavior, method, takes })),
);

describe('scenario: openings that fail later', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2031-01-01T00:00:00Z', test_clock: true });
    const { scope, services } = world.api;
    await services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
    await world.api.request('PUT', '/settings/payment_config', { body: { value: { default_gateway: 'sandbox' } } });
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    for (const { behavior: payment_behavior, method } of CASES)
      await world.subscribe(`${payment_behavior} ${method}`, 'Pro', {
        payment_behavior,
        gateway_payment_method_id: `pm_sandbox_${method}`,
      });
    await world.advance('2031-01-31');
  });
  after(() => world.stop());

  const paymentOf = async (name: string) => {
    const [opening] = await world.invoices(name);
    const { items } = await world.get(`/payments?destination_id=${opening!.id}&expand=attempts`);
    expect(items).to.have.length(1);
    return items[0];
  };

  for (const { behavior, method, takes } of CASES)
    it(`${behavior}, ${method}: tried 3, 5 and 7 days after it was known`, async () => {
      const { attempts, payment_status } = (await paymentOf(`${behavior} ${method}`))!;
      const days = attempts!.map(({ created_at }) => new Date(created_at).getUTCDate());
      const expected = [1];
      for (const pause of [3, 5, 7]) expected.push(expected.at(-1)! + takes + pause);
      expect([days, payment_status]).to.deep.equal([expected.filter((day) => day < 31), 'FAILED']);
    });

  it('a card that pays then makes it active', async () => {
    const name = 'error_if_incomplete fails_late';
    expect((await world.subscription(name)).subscription_status).to.equal('incomplete');
    const { id } = (await world.invoices(name))[0]!;
    const paid = await world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: id,
      payment_method_type: 'CARD',
      payment_method_id: 'pm_sandbox_card',
      amount: '10',
      currency: 'usd',
    });
    expect(paid.payment_status).to.equal('SUCCEEDED');
    expect((await world.subscription(name)).subscription_status).to.equal('active');
  });
});
