/**
 * Statements of Postgres that a request sends. They are most of its cost, and each may wait for a round trip. The bounds may only shrink:
 * a record that was read is passed on, and rows of one table are written by one statement.
 */
import { expect } from 'chai';
import { type Statement, StatementRecorder } from '../../support/read-rows.ts';
import { fixed, startWorld, usage, type World } from '../../support/world.ts';

/** Greatest number of statements of a request. */
const bounds = { preview: 17, subscription: 30, 'subscription with an advance charge': 50 };

describe('statements of a request', () => {
  let world: World;
  let recorder: StatementRecorder;

  before(async () => {
    world = await startWorld({ now: '2031-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [usage('calls', '1')]);
    await world.plan('Fixed', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    for (const customer of ['acme', 'bravo', 'charlie']) await world.subscribe(customer, 'Pro');
    recorder = await StatementRecorder.open(world.api.services.postgres);
  });
  after(async () => {
    await recorder.close();
    await world.stop();
  });

  async function send(path: string, body: object): Promise<readonly Statement[]> {
    const { result, statements } = await recorder.during((request_id) =>
      world.api.request<object>('POST', path, { body, headers: { 'x-request-id': request_id } }),
    );
    expect(result.status, result.text).to.be.below(300);
    return statements;
  }

  function expectAtMost(statements: readonly Statement[], most: number): void {
    const texts = statements.map(({ sql }) => sql.slice(0, 120)).join('\n');
    expect(statements.length, texts).to.be.within(1, most);
  }

  const subscription = (plan: string) => ({
    external_customer_id: 'acme',
    plan_id: world.id(`plan ${plan}`),
    currency: 'usd',
    billing_period: 'MONTHLY',
    billing_cadence: 'RECURRING',
    start_date: '2031-01-01T00:00:00Z',
  });

  it('are few for a preview', async () => {
    const subscription_id = world.id('subscription acme');
    expectAtMost(await send('/invoices/preview', { subscription_id }), bounds.preview);
  });

  it('are few for a new subscription', async () => {
    expectAtMost(await send('/subscriptions', subscription('Pro')), bounds.subscription);
  });

  it('read the plan of a new subscription under its lock, and the clocks of its environment', async () => {
    const named = { ...subscription('Pro'), external_customer_id: undefined, customer_id: world.id('customer acme') };
    for (const body of [subscription('Pro'), named]) {
      const sql = (await send('/subscriptions', body)).map((one) => one.sql);
      const find = (pattern: RegExp) => sql.findIndex((text) => pattern.test(text));
      const [environment, clock, customer, plan, prices] = [
        /from "?environments"?.* for share/s,
        /from "?test_clocks"?/,
        /from "?customers"?.* for (share|update)/s,
        /from "?plans"?.* for share/s,
        /from "?prices"?.*entity_type/s,
      ].map(find) as [number, number, number, number, number];
      expect(environment, sql.join('\n')).to.be.within(0, clock);
      expect(customer, sql.join('\n')).to.be.within(0, plan);
      expect(plan, sql.join('\n')).to.be.within(0, prices);
    }
  });

  it('are few for a new subscription with an advance charge', async () => {
    expectAtMost(await send('/subscriptions', subscription('Fixed')), bounds['subscription with an advance charge']);
  });
});
