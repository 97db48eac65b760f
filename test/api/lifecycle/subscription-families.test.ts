/** What may belong together and what not; what families are billed is told in test/scenarios/families.test.ts. */
import { expect } from 'chai';
import type { Plan, Subscription } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00Z';

type Fields = Record<string, unknown>;

describe('/subscriptions, families', () => {
  let api: TestApi;
  let plan: Plan;
  let other: Plan;

  before(async () => {
    api = await startTestApi({ now: NOW });
    for (const external_id of ['acme', 'payer', 'one', 'two', 'three', 'four', 'five'])
      await make('/customers', { external_id, name: external_id });
    plan = await planNamed('Pro');
    other = await planNamed('Other');
  });
  after(() => api.stop());

  const make = async <Path extends string>(path: Path, body: unknown) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };
  const planNamed = async (name: string) => {
    const made = await make('/plans', { name });
    const terms = { type: 'FIXED', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', billing_cadence: 'RECURRING' };
    const charge = { invoice_cadence: 'ADVANCE', price_unit_type: 'FIAT', currency: 'usd', amount: '10' };
    await make('/prices', { entity_type: 'PLAN', entity_id: made.id, ...terms, ...charge });
    return made;
  };
  const post = (external_customer_id: string, fields: Fields = {}) =>
    api.request('POST', '/subscriptions', {
      body: { external_customer_id, plan_id: plan.id, currency: 'usd', billing_period: 'MONTHLY', ...fields },
    });
  const create = async <Path extends string>(external_customer_id: Path, fields: Fields = {}) => {
    const answer = await post(external_customer_id, fields);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const search = async (fields: Fields) => (await make('/subscriptions/search', fields)).items;
  const events = async (id: string): Promise<string[]> => {
    const { rows } = await api.services.postgres.raw<{ rows: { event_name: string }[] }>(
      `select event_name from system_events where payload::text like ? order by id`,
      [`%${id}%`],
    );
    return rows.map(({ event_name }) => event_name);
  };
  const inherits = (...names: string[]) => ({ inheritance: { external_customer_ids_to_inherit_subscription: names } });

  describe('201', () => {
    it('is paid by the customer of another subscription', async () => {
      const parent = await create('payer');
      const child = await create('acme', { parent_subscription_id: parent.id, invoice_billing: 'invoice_to_parent' });
      expect(child).to.include({
        subscription_type: 'DELEGATED_INVOICING',
        invoicing_customer_id: parent.customer_id,
        parent_subscription_id: null,
      });
      expect(child.line_items).to.have.length(1);
      expect(child.latest_invoice).to.include({ customer_id: parent.customer_id, amount_due: '10' });
      const found = await search({
        invoicing_customer_ids: [parent.customer_id],
        subscription_type: ['delegated_INVOICING'],
      });
      expect(found.map(({ id }) => id)).to.deep.equal([child.id]);
    });

    it('has children, that are cancelled with it with an event each', async () => {
      const parent = await create('acme', inherits('one', 'two'));
      expect(parent.subscription_type).to.equal('PARENT');
      const children = await search({ parent_subscription_ids: [parent.id] });
      expect(children.map(({ subscription_type }) => subscription_type)).to.deep.equal(['INHERITED', 'INHERITED']);
      const [child] = children;
      const [whole] = await search({ subscription_ids: [child!.id], with_line_items: true });
      expect(whole!.line_items).to.deep.equal([]);

      await make(`/subscriptions/${parent.id}/cancel`, { cancellation_type: 'immediate' });
      for (const { id } of children) {
        const { body } = await api.request('GET', `/subscriptions/${id}`);
        expect(body).to.include({ subscription_status: 'cancelled', end_date: '2026-03-15T12:00:00Z' });
      }
      const told = await events(child!.id);
      expect(told).to.include.members(['subscription.created', 'subscription.cancelled']);
      expect(told.filter((name) => name === 'subscription.cancelled')).to.have.length(1);
    });

    it('follows a cancellation that is scheduled, and a draft that is activated', async () => {
      const parent = await create('acme', { ...inherits('one'), subscription_status: 'draft' });
      const childOf = async () => (await search({ parent_subscription_ids: [parent.id] }))[0];
      expect((await childOf())!.subscription_status).to.equal('draft');
      await make(`/subscriptions/${parent.id}/activate`, { start_date: '2026-03-20T00:00:00Z' });
      const period = { start_date: '2026-03-20T00:00:00Z', current_period_start: '2026-03-20T00:00:00Z' };
      const begun = await api.request('GET', `/subscriptions/${parent.id}`);
      expect(await childOf()).to.include({ ...period, subscription_status: begun.body.subscription_status });
      await make(`/subscriptions/${parent.id}/cancel`, { cancellation_type: 'end_of_period' });
      expect(await childOf()).to.include({ cancel_at: '2026-04-20T00:00:00Z', cancel_at_period_end: true });
      await api.request('POST', `/subscriptions/${parent.id}/cancel`, { body: { cancellation_type: 'immediate' } });
    });
  });

  describe('400', () => {
    let parent: Subscription;
    before(async () => {
      parent = await create('four', inherits('five'));
    });

    const refusals: [string, () => Fields, string][] = [
      [
        'two kinds',
        () => ({ inheritance: { invoicing_customer_external_id: 'one', parent_subscription_id: 'x' } }),
        'inheritance',
      ],
      ['a kind and a parent', () => ({ ...inherits('one'), parent_subscription_id: parent.id }), 'inheritance'],
      ['a customer twice', () => inherits('one', 'one'), 'inheritance.external_customer_ids_to_inherit_subscription'],
      ['itself as a child', () => inherits('three'), 'inheritance.external_customer_ids_to_inherit_subscription'],
      [
        'a child that has a parent',
        () => inherits('five'),
        'inheritance.external_customer_ids_to_inherit_subscription',
      ],
      [
        'itself as payer',
        () => ({ inheritance: { invoicing_customer_external_id: 'three' } }),
        'inheritance.invoicing_customer_external_id',
      ],
      ['no parent to pay', () => ({ invoice_billing: 'invoice_to_parent' }), 'parent_subscription_id'],
      [
        'a parent and no payer',
        () => ({ invoice_billing: 'invoice_to_self', parent_subscription_id: parent.id }),
        'invoice_billing',
      ],
      [
        'lines of a child',
        () => ({ parent_subscription_id: parent.id, line_items: [{ price_id: 'x' }] }),
        'line_items',
      ],
      [
        'an inherited one with a commitment',
        () => ({ parent_subscription_id: parent.id, commitment_amount: '5' }),
        'commitment_amount',
      ],
      [
        'an inherited one with a trial',
        () => ({ parent_subscription_id: parent.id, trial_period_days: 3 }),
        'trial_period_days',
      ],
      ['another plan than the parent', () => ({ parent_subscription_id: parent.id, plan_id: other.id }), 'plan_id'],
      [
        'joining in a period that is over',
        () => ({ parent_subscription_id: parent.id, start_date: '2026-01-01T00:00:00Z' }),
        'start_date',
      ],
      [
        'a threshold with children',
        () => ({ ...inherits('one'), auto_invoice_threshold: '5' }),
        'auto_invoice_threshold',
      ],
      [
        'a threshold with another payer',
        () => ({ inheritance: { invoicing_customer_external_id: 'one' }, auto_invoice_threshold: '5' }),
        'auto_invoice_threshold',
      ],
    ];
    for (const [title, fields, field] of refusals)
      it(title, async () => {
        const { status, body } = await post('three', fields());
        expect({ status, code: body.code, field: body.details?.field }, body.message).to.deep.equal({
          status: 400,
          code: 'validation_error',
          field,
        });
      });

    it('a subscription of their own of a customer who takes part in another, whoever pays for it', async () => {
      const paid = { inheritance: { invoicing_customer_external_id: 'one' } };
      for (const fields of [{}, inherits('one'), { parent_subscription_id: parent.id }, paid]) {
        const { status, body } = await post('five', fields);
        expect([status, body.code, body.details!.field]).to.deep.equal([400, 'validation_error', 'customer_id']);
      }
    });

    it('a child of a child, which stays what it is', async () => {
      const [child] = await search({ parent_subscription_ids: [parent.id] });
      const delegated = await create('two', { inheritance: { invoicing_customer_external_id: 'one' } });
      for (const { id, subscription_type } of [child!, delegated]) {
        for (const fields of [{ parent_subscription_id: id }, { inheritance: { parent_subscription_id: id } }]) {
          const { status, body } = await post('three', fields);
          expect([status, body.details?.field], body.message).to.deep.equal([400, 'parent_subscription_id']);
        }
        const { body } = await api.request('GET', `/subscriptions/${id}`);
        expect(body.subscription_type).to.equal(subscription_type);
      }
    });

    it('the cancellation of a child alone', async () => {
      const [child] = await search({ parent_subscription_ids: [parent.id] });
      const body = { cancellation_type: 'immediate' };
      const answer = await api.request('POST', `/subscriptions/${child!.id}/cancel`, { body });
      expect([answer.status, answer.body.details!.field]).to.deep.equal([400, 'subscription_type']);
    });
  });

  describe('404', () => {
    it('a parent, a payer or a child that is not there', async () => {
      expect((await post('three', { parent_subscription_id: 'subs_none' })).status).to.equal(404);
      expect((await post('three', inherits('nobody'))).status).to.equal(404);
      expect((await post('three', { inheritance: { invoicing_customer_external_id: 'nobody' } })).status).to.equal(404);
    });
  });
});
