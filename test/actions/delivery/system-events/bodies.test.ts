/**
 * Every action emits its system event, and the body of each event is frozen in test/golden/webhooks. A change of such a
 * file changes the contract with receivers of webhooks.
 */
import { expect } from 'chai';
import { emitOverdue } from '../../../../actions/payments/emit-overdue.ts';
import {
  SYSTEM_EVENT_NAMES,
  SYSTEM_EVENTS,
  type SystemEventName,
} from '../../../../core/platform/system-event/catalogue.ts';
import type { SystemEvent } from '../../../support/answers.ts';
import { expectGolden, withoutIds } from '../../../support/golden.ts';
import { fixed, startWorld, type World } from '../../../support/world.ts';

/** Events that this story does not emit; the comments name the tests that do. */
const ELSEWHERE: readonly string[] = [
  'webhook_endpoint.disabled',
  // test/api/metering/uncounted-events.test.ts
  'event.rejected',
  // test/api/reservations/reservations.test.ts
  'reservation.charge_failed',
  // test/actions/delivery/connections/test-connection.test.ts
  'connection.needs_attention',
  // test/actions/delivery/integrations/push-pending.test.ts
  'integration_mapping.failed',
  // test/actions/delivery/inbound/read-provider.test.ts
  'integration_mapping.needs_attention',
  'payment.disputed',
  // test/scenarios/plan-changes.test.ts
  'subscription.plan_changed',
  // test/combined/broken-plan-changes.test.ts
  'subscription.plan_change.failed',
  // test/combined/grant-alerts.test.ts
  'entitlement.grant.exhausted',
  'entitlement.grant.threshold_reached',
  'entitlement.grant.threshold_recovered',
  // test/scenarios/spend-alerts.test.ts and test/combined/wallet-alerts.test.ts
  'feature.wallet_balance.alert',
  'subscription.group_spend.threshold_reached',
  'subscription.group_spend.threshold_recovered',
  'subscription.line_item_spend.threshold_reached',
  'subscription.line_item_spend.threshold_recovered',
  'subscription.spend.threshold_reached',
  'subscription.spend.threshold_recovered',
  'wallet.credit_balance.dropped',
  'wallet.credit_balance.recovered',
  'wallet.ongoing_balance.dropped',
  'wallet.ongoing_balance.recovered',
];

describe('the bodies of system events', () => {
  let world: World;
  const told: SystemEvent[] = [];
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await tell();
    const { items } = await get('/webhooks/events?limit=1000&order=asc&sort=id');
    told.push(...items);
  });
  after(() => world.stop());

  const get = async <Path extends string>(path: Path) => ok('GET', path);
  async function ok<Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) {
    const answer = await world.api.request(method, path, body === undefined ? {} : { body });
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.within(200, 299);
    return answer.body;
  }

  async function tell() {
    const { id: customer_id } = await ok('POST', '/customers', { external_id: 'acme', name: 'Acme', timezone: 'UTC' });
    await ok('PUT', `/customers/${customer_id}`, { email: 'books@example.com', metadata: { tier: 'gold' } });
    const gone = await ok('POST', '/customers', { external_id: 'gone' });
    await ok('DELETE', `/customers/${gone.id}`);
    const feature = await ok('POST', '/features', { name: 'Seats', type: 'static' });
    await ok('PUT', `/features/${feature.id}`, { description: 'How many may sign in' });
    const clone = await ok('POST', `/features/${feature.id}/clone`, { name: 'Seats, second', lookup_key: 'seats-2' });
    await ok('DELETE', `/features/${clone.id}`);
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE', display_name: 'Base' }), fixed('3')]);
    const terms = { customer_id, plan_id: world.id('plan Pro'), currency: 'usd', billing_period: 'MONTHLY' };
    const subscription = await ok('POST', '/subscriptions', { ...terms, start_date: '2026-01-01T00:00:00Z' });
    await ok('PUT', `/subscriptions/${subscription.id}`, { metadata: { deal: '7' } });
    const draft = await ok('POST', '/subscriptions', { ...terms, subscription_status: 'draft' });
    await ok('POST', `/subscriptions/${draft.id}/activate`, { start_date: '2026-01-01T00:00:00Z' });
    const phases = [{ start_date: '2026-01-01T00:00:00Z', metadata: { ramp: 'first' } }];
    await ok('POST', '/subscriptions', { ...terms, phases });
    const granted = { plan_id: world.id('plan Pro'), feature_id: feature.id, feature_type: 'static' };
    const entitlement = await ok('POST', '/entitlements', { ...granted, static_value: '5' });
    await ok('PUT', `/entitlements/${entitlement.id}`, { static_value: '6' });
    await ok('DELETE', `/entitlements/${entitlement.id}`);
    await world.on('2026-02-01');
    const of = await ok('POST', '/invoices/search', { subscription_id: subscription.id });
    const cycle = of.items.find((one: { billing_reason: string }) => one.billing_reason === 'SUBSCRIPTION_CYCLE');
    await ok('PUT', `/invoices/${cycle!.id}`, { metadata: { po: '12' } });
    await ok('POST', `/invoices/${cycle!.id}/finalize`);
    await ok('PUT', `/invoices/${cycle!.id}/payment`, { payment_status: 'SUCCEEDED', amount: cycle!.amount_due });
    const owed = { currency: 'usd', amount_due: '9', total: '9', subtotal: '9', due_date: '2026-01-31T00:00:00Z' };
    const billed = await ok('POST', '/invoices', { customer_id, ...owed, invoice_status: 'FINALIZED' });
    const paying = { destination_type: 'INVOICE', destination_id: billed.id, amount: '9', currency: 'usd' };
    for (const payment_method_id of ['pm_sandbox_declined', 'pm_sandbox_card']) {
      const charge = { payment_method_type: 'CARD', payment_gateway: 'sandbox', payment_method_id };
      const payment = await ok('POST', '/payments', { ...paying, ...charge, idempotency_key: payment_method_id });
      if (payment.payment_status === 'FAILED') await emitOverdue(world.api.services, { now: world.now });
      await ok('PUT', `/payments/${payment.id}`, { metadata: { order: '7' } });
    }
    const written = await ok('POST', '/invoices', {
      customer_id,
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      amount_due: '5',
      total: '5',
      subtotal: '5',
      line_items: [{ display_name: 'Help', amount: '5', quantity: '1' }],
    });
    await ok('POST', `/invoices/${written.id}/finalize`);
    await ok('POST', `/invoices/${written.id}/comms/trigger`);
    const credited = [{ invoice_line_item_id: written.line_items[0]!.id, amount: '2' }];
    const keys = { credit_note_number: 'CN-7', idempotency_key: 'order-7' };
    const note = { invoice_id: written.id, reason: 'ORDER_CHANGE', line_items: credited, ...keys };
    await ok('POST', '/creditnotes', note);
    await ok('POST', `/invoices/${written.id}/void`);
    await ok('POST', `/subscriptions/${subscription.id}/cancel`, { cancellation_type: 'immediate' });
    const wallet = await ok('POST', '/wallets', { customer_id, currency: 'usd', wallet_type: 'POST_PAID' });
    await ok('PUT', `/wallets/${wallet.id}`, { name: 'Main' });
    const bought = {
      credits_to_add: '7',
      transaction_reason: 'PURCHASED_CREDIT_INVOICED',
      idempotency_key: 'credits-7',
    };
    const { invoice_id } = await ok('POST', `/wallets/${wallet.id}/top-up`, bought);
    await ok('PUT', `/invoices/${invoice_id}/payment`, { payment_status: 'SUCCEEDED' });
    const prepaid = await ok('POST', '/wallets', { customer_id, currency: 'usd' });
    for (const outcome of ['succeeded', 'failed', null]) {
      const checkout = { payment_provider: 'sandbox', success_url: 'https://shop.example/thanks' };
      const paying = { ...bought, idempotency_key: `credits-${outcome}`, checkout };
      const { checkout_session: session } = await ok('POST', `/wallets/${prepaid.id}/top-up`, paying);
      if (outcome === null) await ok('DELETE', `/checkout/sessions/${session!.id}`);
      else await ok('POST', `/payments/${session!.checkout_payment_id!}/sandbox`, { outcome });
    }
    await ok('POST', `/wallets/${wallet.id}/terminate`);
    const { endpoint } = await ok('POST', '/webhooks/endpoints', { url: 'https://hooks.example.com/' });
    await ok('POST', `/webhooks/endpoints/${endpoint.id}/test`);
  }

  const bodiesOf = (name: string) => told.flatMap(({ event_name, payload }) => (event_name === name ? [payload] : []));

  it('are told in this order', () => {
    const names = told.map(({ event_name }) => event_name);
    expect(names.slice(0, 13)).to.deep.equal([
      'customer.created',
      'customer.updated',
      'customer.created',
      'customer.deleted',
      'feature.created',
      'feature.updated',
      'feature.created',
      'feature.deleted',
      'invoice.drafted',
      'invoice.finalized',
      'subscription.created',
      'subscription.updated',
      'subscription.draft.created',
    ]);
    expect(names.slice(-4)).to.deep.equal([
      'checkout.session.expired',
      'wallet.transaction.created',
      'wallet.terminated',
      'webhook_endpoint.test',
    ]);
  });

  for (const name of SYSTEM_EVENT_NAMES.filter((each) => !ELSEWHERE.includes(each)))
    it(name, () => {
      const [body] = bodiesOf(name);
      expect(body, `${name} was told`).to.be.an('object');
      // The hint of a secret is random.
      const text = JSON.stringify(withoutIds(body)).replace(/whsec_[^"]*/g, 'whsec_01***2345');
      expectGolden(`webhooks/${name}.json`, JSON.parse(text));
    });

  it('say who did it, to what, and by name', () => {
    for (const { id, event_name, entity_type, entity_id, user_id, payload } of told) {
      expect(payload).to.deep.include({ event_type: event_name, id });
      const { body_key = entity_type }: { body_key?: string } = SYSTEM_EVENTS[event_name as SystemEventName];
      expect((payload[body_key] as { id: string }).id, event_name).to.equal(entity_id);
      if (/^(customer|feature|entitlement)\./.test(event_name)) expect(user_id, event_name).to.match(/^user_/);
    }
  });
});
