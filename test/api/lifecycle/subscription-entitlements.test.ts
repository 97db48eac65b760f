/** What a new subscription is granted instead of what its plan grants (docs/rules/entitlements.md, "What can grant"). */
import { expect } from 'chai';
import type { Entitlement, Plan } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

type Fields = Record<string, unknown>;

describe('/subscriptions: override_entitlements', () => {
  let api: TestApi;
  let plan: Plan;
  let granted: Entitlement;
  let strange: Entitlement;

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    await make('/customers', { external_id: 'acme', name: 'Acme' });
    plan = await make('/plans', { name: 'Pro' });
    const other = await make('/plans', { name: 'Other' });
    const meter = await make('/meters', { name: 'calls', event_name: 'calls', aggregation: { type: 'COUNT' } });
    const feature = await make('/features', { name: 'Calls', type: 'metered', meter_id: meter.id });
    const grant = (entity_id: string) =>
      make('/entitlements', {
        entity_type: 'PLAN',
        entity_id,
        feature_id: feature.id,
        feature_type: 'metered',
        usage_limit: 100,
        is_soft_limit: true,
      });
    granted = await grant(plan.id);
    strange = await grant(other.id);
    await make('/prices', {
      entity_type: 'PLAN',
      entity_id: plan.id,
      meter_id: meter.id,
      type: 'USAGE',
      billing_model: 'FLAT_FEE',
      amount: '1',
      invoice_cadence: 'ARREAR',
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_cadence: 'RECURRING',
      price_unit_type: 'FIAT',
    });
  });
  after(() => api.stop());

  const make = async <Path extends string>(path: Path, body: Fields) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const post = (override_entitlements: Fields[]) =>
    api.request('POST', '/subscriptions', {
      body: {
        external_customer_id: 'acme',
        plan_id: plan.id,
        currency: 'usd',
        billing_period: 'MONTHLY',
        override_entitlements,
      },
    });

  it('201: replaces what the plan grants, for this subscription', async () => {
    const answer = await post([{ entitlement_id: granted.id, usage_limit: 500 }]);
    expect(answer.status, answer.text).to.equal(201);
    const { body } = await api.request('GET', `/subscriptions/${answer.body.id}/entitlements`);
    const [feature] = body.features;
    expect(feature!.entitlement).to.include({ usage_limit: 500, is_soft_limit: true });
  });

  const refused: [string, () => Fields[], string][] = [
    [
      'of another plan',
      () => [{ entitlement_id: strange.id, usage_limit: 1 }],
      'override_entitlements[0].entitlement_id',
    ],
    ['twice', () => [1, 2].map(() => ({ entitlement_id: granted.id })), 'override_entitlements[1].entitlement_id'],
    [
      'a value of another type',
      () => [{ entitlement_id: granted.id, static_value: 'gold' }],
      'override_entitlements[0].static_value',
    ],
  ];
  for (const [title, overrides, field] of refused)
    it(`400: ${title}`, async () => {
      const answer = await post(overrides());
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    });
});
