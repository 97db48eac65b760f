/** Another plan for a running subscription: in place, at the end of a period, and with other periods. */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { ListedSubscription, PlanChange } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: plan changes', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Basic', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'basic' }),
      usage('calls', '0.01', { display_name: 'calls' }),
    ]);
    await world.plan('Pro', [
      fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'pro' }),
      usage('calls', '0.02', { display_name: 'pro calls' }),
    ]);
    await world.plan('Pro, by the year', [
      fixed('620', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL', display_name: 'pro' }),
      usage('calls', '0.02', { billing_period: 'ANNUAL', display_name: 'pro calls' }),
    ]);
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const change = (plan: string, fields: object = {}) => ({
    target_plan_id: world.id(`plan ${plan}`),
    proration_behavior: 'create_prorations',
    billing_cadence: 'RECURRING',
    billing_period: 'MONTHLY',
    billing_cycle: 'anniversary',
    ...fields,
  });
  const changeV2 = (plan: string, fields: object = {}) => ({
    target_plan_id: world.id(`plan ${plan}`),
    proration_behavior: 'create_prorations',
    ...fields,
  });

  // First: it would bill what goes on of the others for a year.
  it('with other periods: a new one begins now, the arrears of the old one are invoiced, one invoice nets', async () => {
    await world.on('2026-01-01', () => world.subscribe('year', 'Basic'));
    await world.on('2026-01-10', () => world.use('year', 'calls', 100));
    await world.on('2026-01-11');
    await world.waitForPipeline();
    const body = change('Pro, by the year', { billing_period: 'ANNUAL' });
    const preview = await world.post(path('year', 'change/preview'), body);
    const changed = await world.post(path('year', 'change/execute'), body);
    expect(preview.new_billing_cycle.period_end).to.equal('2027-01-11T00:00:00Z');
    expect(changed.new_subscription.current_period_end).to.equal('2027-01-11T00:00:00Z');
    await world.finalize();
    await world.on('2027-01-11');
    expect((await world.statements('year')).slice(1)).to.deep.equal([
      'PRORATION FINALIZED 2026-01-01..2026-01-11 = 1\n  calls 2026-01-01..2026-01-11: 100 = 1',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2027-01-11 = 599\n' +
        '  basic (unused time) 2026-01-11..2026-02-01: 1 = -21\n  pro 2026-01-11..2027-01-11: 1 = 620',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-11..2027-01-11 = 620\n' +
        '  pro 2027-01-11..2028-01-11: 1 = 620\n  pro calls 2026-01-11..2027-01-11: 0 = 0',
    ]);
  });

  // docs/rules/usage.md, "One number".
  it('where periods begin anew, what was invoiced with the change is not in the usage of the one that runs', async () => {
    const whole = { commitment_amount: '310', enable_true_up: true, overage_factor: '2' };
    const all = [
      ['anew', {}],
      ['anew, committed', whole],
      ['anew, for a quarter', { ...whole, commitment_amount: '9', commitment_duration: 'QUARTERLY' }],
    ] as const;
    for (const [name, fields] of all) {
      await world.on('2026-01-01', () => world.subscribe(name, 'Basic', fields));
      await world.on('2026-01-05', () => world.use(name, 'calls', 1_000));
      await world.on('2026-01-16');
      await world.post(path(name, 'change/execute'), change('Pro', { billing_cycle: 'calendar' }));
      await world.on('2026-01-20', () => world.use(name, 'calls', 500));
      await world.waitForPipeline();
      const id = world.id(`subscription ${name}`);
      const used = await world.post('/subscriptions/usage', { subscription_id: id });
      const preview = await world.post('/invoices/preview', { subscription_id: id });
      const usage_lines = preview.line_items.filter(({ display_name }) => display_name !== 'pro');
      const sum = sumDecimals(usage_lines.map(({ amount }) => new Decimal(amount)));
      expect(`${used.amount}`, name).to.equal(sum.toFixed());
    }
  });

  /** Plans of a subscription that were told as changed. */
  const toldPlans = async (name: string): Promise<string[]> => {
    const { items } = await world.get('/webhooks/events?limit=1000&event_names=subscription.plan_changed');
    const told = items.map(({ payload }) => payload.subscription as ListedSubscription);
    const plans = new Map(['Basic', 'Pro'].map((plan) => [world.id(`plan ${plan}`), plan]));
    return told.flatMap(({ id, plan_id }) => (id === world.id(`subscription ${name}`) ? plans.get(plan_id)! : []));
  };

  it('in place: one invoice, and usage is charged at the price of its time', async () => {
    await world.on('2026-01-01', () => world.subscribe('up', 'Basic'));
    await world.on('2026-01-10', () => world.use('up', 'calls', 100));
    await world.on('2026-01-11');
    const preview = await world.post(path('up', 'change/preview'), change('Pro'));
    const changed = await world.post(path('up', 'change/execute'), change('Pro'));
    expect([changed.change_type, changed.is_scheduled, changed.invoice!.total]).to.deep.equal(['upgrade', false, '21']);
    expect(changed.new_subscription.id).to.equal(changed.old_subscription.id);
    expect(preview.proration_details).to.deep.equal(changed.proration_applied);
    expect(preview.next_invoice_preview!.total).to.equal('21');
    expect(await toldPlans('up')).to.deep.equal(['Pro']);
    await world.on('2026-01-20', () => world.use('up', 'calls', 100));
    await world.on('2026-02-01');
    expect((await world.statements('up')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2026-02-01 = 21\n' +
        '  basic (unused time) 2026-01-11..2026-02-01: 1 = -21\n  pro 2026-01-11..2026-02-01: 1 = 42',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 65\n' +
        '  calls 2026-01-01..2026-01-11: 100 = 1\n  pro 2026-02-01..2026-03-01: 1 = 62\n' +
        '  pro calls 2026-01-11..2026-02-01: 100 = 2',
    ]);
  });

  it('in place without proration: the new plan is charged from the next period on', async () => {
    await world.on('2026-01-01', () => world.subscribe('none', 'Basic'));
    await world.on('2026-01-11');
    const changed = await world.post(
      path('none', 'change/v2/execute'),
      changeV2('Pro', { proration_behavior: 'none' }),
    );
    expect(changed.changed_resources.invoices).to.deep.equal([]);
    expect(changed.changed_resources.line_items.map((line) => line.change_action)).to.deep.equal([
      'ended',
      'ended',
      'created',
      'created',
    ]);
    await world.on('2026-02-01');
    expect((await world.statements('none')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 62\n' +
        '  calls 2026-01-01..2026-01-11: 0 = 0\n  pro 2026-02-01..2026-03-01: 1 = 62\n  pro calls 2026-01-11..2026-02-01: 0 = 0',
    );
  });

  it('a downgrade goes into the wallet', async () => {
    await world.on('2026-01-01', () => world.subscribe('down', 'Pro'));
    await world.pay('down');
    await world.on('2026-01-11');
    const changed = await world.post(path('down', 'change/v2/execute'), changeV2('Basic'));
    expect([changed.change_type, changed.changed_resources.invoices[0]!.wallet_transaction!.amount]).to.deep.equal([
      'downgrade',
      '21',
    ]);
    const [wallet] = await world.get(`/customers/${world.id('customer down')}/wallets`);
    expect(wallet!.balance).to.equal('21');
  });

  it('at the end of the period: until then it can be undone, then the invoice has the new plan', async () => {
    await world.on('2026-01-01', () => world.subscribe('later', 'Basic'));
    await world.on('2026-01-11');
    const body = change('Pro', { change_at: 'end_of_period' });
    const first = await world.post(path('later', 'change/execute'), body);
    expect([first.is_scheduled, first.invoice, first.scheduled_at]).to.deep.equal([true, null, '2026-02-01T00:00:00Z']);
    const second = await world.api.request('POST', path('later', 'change/execute'), { body });
    expect([second.status, second.body.details!.field]).to.deep.equal([400, 'change_at']);
    await world.post(`/subscriptions/schedules/${first.schedule_id}/cancel`, {});
    await world.post(path('later', 'change/execute'), body);
    expect(await toldPlans('later')).to.deep.equal([]);
    await world.on('2026-02-01');
    expect(await toldPlans('later')).to.deep.equal(['Pro']);
    expect((await world.statements('later')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 62\n' +
        '  calls 2026-01-01..2026-02-01: 0 = 0\n  pro 2026-02-01..2026-03-01: 1 = 62',
    ]);
    const { schedules } = await world.get(path('later', 'schedules'));
    expect(schedules.map((one) => one.status)).to.deep.equal(['executed', 'cancelled']);
    expect((await world.subscription('later')).plan!.name).to.equal('Pro');
  });

  it('with other periods at the end of the period', async () => {
    await world.on('2026-01-01', () => world.subscribe('year later', 'Basic'));
    const fields = { billing_period: 'ANNUAL', change_at: 'end_of_period' };
    await world.post(path('year later', 'change/execute'), change('Pro, by the year', fields));
    await world.on('2026-02-01');
    await world.finalize();
    expect((await world.subscription('year later')).current_period_end).to.equal('2027-02-01T00:00:00Z');
    expect((await world.statements('year later')).slice(1)).to.deep.equal([
      'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 620\n' +
        '  calls 2026-01-01..2026-02-01: 0 = 0\n  pro 2026-02-01..2027-02-01: 1 = 620',
    ]);
  });

  it('of who is paid for by another customer: the invoice goes to that one', async () => {
    await world.on('2026-01-01', () => world.post('/customers', { external_id: 'payer', name: 'Payer' }));
    const paid = { inheritance: { invoicing_customer_external_id: 'payer' } };
    await world.subscribe('paid for', 'Basic', paid);
    await world.on('2026-01-11');
    const changed = await world.post(path('paid for', 'change/execute'), change('Pro'));
    const { id } = await world.get('/customers/external/payer');
    expect([changed.invoice!.customer_id, changed.invoice!.total]).to.deep.equal([id, '21']);
    expect((await world.subscription('paid for')).subscription_type).to.equal('DELEGATED_INVOICING');
  });

  it('is refused by name where it is not possible', async () => {
    await world.on('2026-01-01', () => world.subscribe('refused', 'Basic'));
    const refusal = async (body: object) => {
      const answer = await world.api.request('POST', path('refused', 'change/v2/preview'), { body });
      return [answer.status, answer.body.code, answer.body.details!.field];
    };
    expect(await refusal(changeV2('Basic'))).to.deep.equal([400, 'validation_error', 'target_plan_id']);
    expect(await refusal({ ...changeV2('Pro'), target_plan_id: 'plan_none' })).to.deep.equal([
      404,
      'not_found',
      'target_plan_id',
    ]);
    await world.cancel('refused', { cancellation_type: 'end_of_period' });
    expect(await refusal(changeV2('Pro'))).to.deep.equal([400, 'invalid_operation', 'cancel_at']);
    const { schedules } = await world.get(path('refused', 'schedules'));
    await world.post(`/subscriptions/schedules/${schedules[0]!.id}/cancel`, {});
    await world.cancel('refused');
    expect(await refusal(changeV2('Pro'))).to.deep.equal([400, 'invalid_operation', 'subscription_status']);
  });

  describe('add-ons', () => {
    const addons: Record<string, string> = {};
    before(async () => {
      for (const [name, amount] of Object.entries({ Support: '310', Backup: '31', Free: null })) {
        const { id } = await world.post('/addons', { name, lookup_key: name, type: 'onetime' });
        addons[name] = id;
        const entity = { entity_type: 'ADDON', entity_id: id, currency: 'usd', billing_period: 'MONTHLY' };
        const terms = { price_unit_type: 'FIAT', start_date: '2020-01-01T00:00:00Z', display_name: name };
        if (amount)
          await world.post('/prices', { ...entity, ...terms, ...fixed(amount, { invoice_cadence: 'ADVANCE' }) });
      }
    });
    const all = () => Object.values(addons).map((addon_id) => ({ addon_id }));
    const held = async (customer: string): Promise<string[]> =>
      (await world.get(path(customer, 'addons/associations'))).map(({ addon_id }) => addon_id);
    const changed = ({ entity_changes }: PlanChange) =>
      entity_changes.map(({ entity_id, behaviour }) => [entity_id, behaviour]);

    it('are carried unless the request drops them: then they are detached, and credited with the plan', async () => {
      await world.on('2026-01-01', () => world.subscribe('drops', 'Basic', { addons: all() }));
      await world.on('2026-01-11');
      const policy = { default_behaviour: 'drop', overrides: { [addons.Backup!]: 'carry' } };
      const request = changeV2('Pro', { entity_policies: { addons: policy } });
      const preview = await world.post(path('drops', 'change/v2/preview'), request);
      const done = await world.post(path('drops', 'change/v2/execute'), request);
      expect(changed(done)).to.deep.equal([
        [addons.Backup, 'carry'],
        [addons.Support, 'drop'],
        [addons.Free, 'drop'],
      ]);
      expect(changed(preview)).to.deep.equal(changed(done));
      // 42 for the plan less 21 and 210 that are not served; the backup stays charged.
      expect(done.changed_resources.invoices[0]!.invoice!.subtotal).to.equal('-189');
      expect(await held('drops')).to.deep.equal([addons.Backup]);
      const again = changeV2('Basic', { entity_policies: { addons: { overrides: { [addons.Support!]: 'drop' } } } });
      const refused = await world.api.request('POST', path('drops', 'change/v2/execute'), { body: again });
      expect([refused.status, refused.body.details?.field]).to.deep.equal([
        400,
        `entity_policies.addons.overrides.${addons.Support}`,
      ]);
    });

    it('are dropped at the end of the period with a change that waits for it, whatever was detached before', async () => {
      await world.on('2026-01-01', () => world.subscribe('drops later', 'Basic', { addons: all() }));
      const overrides = { [addons.Support!]: 'drop', [addons.Free!]: 'drop' };
      const policies = { entity_policies: { addons: { overrides } }, change_at: 'end_of_period' };
      const done = await world.post(path('drops later', 'change/v2/execute'), changeV2('Pro', policies));
      expect(await held('drops later')).to.have.length(3);
      const free = done.entity_changes.find(({ entity_id }) => entity_id === addons.Free);
      const body = { addon_association_id: free!.reference_id, effective_date: world.now.toISOString() };
      await world.api.request('DELETE', '/subscriptions/addon', { body });
      await world.on('2026-02-01');
      expect(await held('drops later')).to.deep.equal([addons.Backup]);
      expect((await world.statements('drops later')).at(-1)).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 93\n' +
          '  Backup 2026-02-01..2026-03-01: 1 = 31\n  calls 2026-01-01..2026-02-01: 0 = 0\n' +
          '  pro 2026-02-01..2026-03-01: 1 = 62',
      );
    });
  });
});
