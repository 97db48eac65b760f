/**
 * Members of families whose end comes inside a period, and who may become one (docs/rules/subscriptions.md, "Families"): nobody
 * waits for the parent to end, and nobody's usage is paid for twice.
 */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const at = (day: string) => `2026-${day}T00:00:00Z`;

describe('scenario: members of families end and begin', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Team', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      usage('calls', '1', { display_name: 'calls' }),
    ]);
    await world.plan('Other', [usage('calls', '2', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  const ask = <Path extends string>(method: string, path: Path, body?: object) =>
    world.api.request(method as 'POST', path, { body });
  const subscriptionOf = (name: string) => `/subscriptions/${world.id(`subscription ${name}`)}` as const;
  const schedulesOf = async (name: string) => (await world.get(`${subscriptionOf(name)}/schedules`)).schedules;
  const group = (parent: string, child: string) =>
    ask('POST', `${subscriptionOf(parent)}/modify/execute`, {
      type: 'grouped_invoicing',
      grouped_invoicing_params: { action: 'add', child_subscription_ids: [world.id(`subscription ${child}`)] },
    });
  const planChange = (name: string) =>
    ask('POST', `${subscriptionOf(name)}/change/execute`, {
      target_plan_id: world.id('plan Other'),
      billing_cadence: 'RECURRING',
      billing_period: 'MONTHLY',
      billing_cycle: 'anniversary',
      change_at: 'end_of_period',
      proration_behavior: 'none',
    });
  const eventsOf = async (name: string, subscription: string) => {
    const { items } = await world.get(`/webhooks/events?event_names=${name}&limit=100`);
    return items.filter(({ entity_id }) => entity_id === subscription);
  };

  // The latest dates come first: what goes on is billed by every later date of another test.
  describe('those who are invoiced with a parent that ends', () => {
    const remove = (parent: string, child: string) =>
      ask('POST', `${subscriptionOf(parent)}/modify/execute`, {
        type: 'grouped_invoicing',
        grouped_invoicing_params: { action: 'remove', child_subscription_ids: [world.id(`subscription ${child}`)] },
      });

    const family = async (name: string) => {
      for (const one of [`${name} parent`, `${name} child`]) await world.subscribe(one, 'Team');
      const grouped = await group(`${name} parent`, `${name} child`);
      expect(grouped.status, grouped.text).to.equal(200);
    };

    before(async () => {
      await world.on('2026-05-01');
      for (const name of ['edge', 'left', 'back', 'skip', 'cut']) await family(name);
    });

    it('a child that was cancelled stays until what it owes is invoiced', async () => {
      await world.use('left child', 'calls', 7);
      await world.on('2026-05-11');
      await world.cancel('left child');
      const refused = await remove('left parent', 'left child');
      expect([refused.status, refused.body.details!.field]).to.deep.equal([
        400,
        'grouped_invoicing_params.child_subscription_ids',
      ]);
      await world.on('2026-06-01');
      expect((await world.statements('left parent')).at(-1)).to.contain('  calls 2026-05-01..2026-05-11: 7 = 7');
    });

    it('begins its period by itself where the parent ends at the instant at which it begins', async () => {
      await world.cancel('edge parent');
      const child = await world.subscription('edge child');
      expect(child).to.include({ subscription_type: 'STANDALONE', subscription_status: 'active' });
      expect((await world.statements('edge child')).at(-1)).to.equal(
        'SUBSCRIPTION_CREATE FINALIZED 2026-06-01..2026-07-01 = 31\n  base 2026-06-01..2026-07-01: 1 = 31',
      );
      const whole = [...(await world.statements('edge parent')), ...(await world.statements('edge child'))].join('\n');
      expect(whole.match(/base 2026-06-01/g), 'once').to.have.length(1);
    });

    it('pays itself what it owes where it was cancelled before a parent that ended earlier', async () => {
      await world.on('2026-06-08', () => world.use('back child', 'calls', 4));
      await world.on('2026-06-11');
      await world.waitForPipeline();
      await world.cancel('back child');
      await world.cancel('back parent', { cancellation_type: 'immediate', cancel_at: '2026-06-05T00:00:00Z' });
      expect((await world.statements('back child')).at(-1)).to.equal(
        'PRORATION DRAFT 2026-06-01..2026-06-11 = 4\n  calls 2026-06-01..2026-06-11: 4 = 4',
      );
      expect((await world.statements('back parent')).at(-1)).not.to.contain('2026-06-01..2026-06-05: 4');
    });

    it('and where what the parent owes is forgiven', async () => {
      await world.use('skip child', 'calls', 3, { at: at('06-10') });
      await world.waitForPipeline();
      await world.cancel('skip child');
      const forgiven = { cancellation_type: 'immediate', cancel_immediately_invoice_policy: 'skip' };
      await world.cancel('skip parent', forgiven);
      expect((await world.statements('skip child')).at(-1)).to.contain('= 3\n  calls 2026-06-01');
    });

    it('but not twice what stands on the last invoice of the parent', async () => {
      await world.use('cut child', 'calls', 2);
      await world.on('2026-06-12');
      await world.cancel('cut child');
      await world.on('2026-06-13');
      await world.cancel('cut parent');
      expect((await world.statements('cut parent')).at(-1)).to.contain('  calls 2026-06-01..2026-06-12: 2 = 2');
      expect((await world.statements('cut child')).at(-1)).to.contain('SUBSCRIPTION_CREATE');
    });
  });

  describe('one who takes part in a subscription', () => {
    const inherit = (parent: string, fields: object) =>
      ask('POST', '/subscriptions', {
        plan_id: world.id('plan Team'),
        currency: 'usd',
        billing_period: 'MONTHLY',
        parent_subscription_id: world.id(`subscription ${parent}`),
        ...fields,
      });

    before(async () => {
      await world.on('2026-04-01');
      await world.subscribe('company', 'Team');
    });

    it('leaves on the day that was stated, and may have one of their own from then on', async () => {
      await world.post('/customers', { external_id: 'guest', name: 'guest' });
      const heir = await inherit('company', { external_customer_id: 'guest', end_date: at('04-10') });
      expect(heir.status, heir.text).to.equal(201);
      const own = { external_customer_id: 'guest', plan_id: world.id('plan Team'), currency: 'usd' };
      const subscribe = (start_date: string) =>
        ask('POST', '/subscriptions', { ...own, billing_period: 'MONTHLY', start_date });
      expect((await subscribe(at('04-09'))).status).to.equal(400);
      expect((await subscribe(at('04-10'))).status, 'behind it').to.equal(201);
      await world.on('2026-04-10');
      const left = await world.get(`/subscriptions/${heir.body.id}`);
      expect(left).to.include({ subscription_status: 'cancelled', end_date: at('04-10') });
      expect(await eventsOf('subscription.cancelled', heir.body.id)).to.have.length(1);
      await world.on('2026-04-12');
      expect((await subscribe(at('04-05'))).status, 'it would count what the parent has counted').to.equal(400);
    });

    it('has no other of their own', async () => {
      await world.subscribe('owner', 'Team', { start_date: at('04-02') });
      const refused = await inherit('company', { external_customer_id: 'owner' });
      expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'customer_id']);
      await world.cancel('owner');
      expect((await inherit('company', { external_customer_id: 'owner', start_date: at('04-05') })).status).to.equal(
        400,
      );
      const joined = await inherit('company', { external_customer_id: 'owner' });
      expect(joined.status, joined.text).to.equal(201);
    });

    it('nor a draft that becomes one', async () => {
      const draft = await world.subscribe('drafter', 'Team', { subscription_status: 'draft' });
      expect((await inherit('company', { external_customer_id: 'drafter' })).status).to.equal(201);
      const refused = await ask('POST', `/subscriptions/${draft.id}/activate`, { start_date: world.now.toISOString() });
      expect(refused.status, refused.text).to.equal(400);
    });

    it('counts from when they have their external id at the earliest', async () => {
      const [first] = [await world.subscribe('shared name', 'Team')];
      await world.on('2026-04-20');
      await world.cancel('shared name');
      const renamed = await ask('PUT', `/customers/${first.customer_id}`, { external_id: 'another name' });
      expect(renamed.status, renamed.text).to.equal(200);
      await world.post('/customers', { external_id: 'shared name', name: 'the next' });
      const heir = { external_customer_id: 'shared name' };
      const refused = await inherit('company', { ...heir, start_date: at('04-15') });
      expect([refused.status, refused.body.details!.field]).to.deep.equal([400, 'start_date']);
      const joined = await inherit('company', { ...heir, start_date: at('04-20') });
      expect(joined.status, joined.text).to.equal(201);
    });
  });

  describe('one that is invoiced with a parent', () => {
    before(async () => {
      await world.on('2026-01-01');
      for (const name of ['parent', 'dated', 'ending']) await world.subscribe(name, 'Team');
      for (const name of ['dated', 'ending']) expect((await group('parent', name)).status).to.equal(200);
      for (const name of ['dated', 'ending']) await world.use(name, 'calls', 5);
      await world.cancel('dated', {
        cancellation_type: 'scheduled_date',
        cancel_at: at('01-21'),
        proration_behavior: 'create_prorations',
      });
      await world.cancel('ending', { cancellation_type: 'end_of_period', proration_behavior: 'create_prorations' });
    });

    it('ends on its date, and gives back what it was charged for the time behind it', async () => {
      await world.on('2026-01-20');
      expect((await world.subscription('dated')).subscription_status).to.equal('active');
      await world.on('2026-01-21');
      expect(await world.subscription('dated')).to.include({
        subscription_status: 'cancelled',
        cancelled_at: at('01-21'),
      });
      expect((await schedulesOf('dated')).map(({ status }) => status)).to.deep.equal(['executed']);
      expect((await world.statements('dated')).at(-1)).to.equal(
        'SUBSCRIPTION_UPDATE SKIPPED 2026-01-21..2026-02-01 = 0\n  base (unused time) 2026-01-21..2026-02-01: 1 = -11',
      );
    });

    it('owes what it used on the next invoice of its parent', async () => {
      await world.on('2026-02-01');
      expect((await world.statements('parent')).at(-1)).to.contain('  calls 2026-01-01..2026-01-21: 5 = 5');
      expect((await world.statements('parent')).at(-1)).to.contain('  calls 2026-01-01..2026-02-01: 5 = 5');
      expect((await world.statements('parent')).at(-1), 'the bases of the two have ended').to.contain('= 41\n');
      expect((await world.subscription('ending')).subscription_status).to.equal('cancelled');
      expect((await schedulesOf('ending')).map(({ status }) => status)).to.deep.equal(['executed']);
      await world.on('2026-03-01');
      expect((await world.statements('parent')).at(-1)).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 31\n' +
          '  base 2026-03-01..2026-04-01: 1 = 31\n  calls 2026-02-01..2026-03-01: 0 = 0',
      );
    });

    it('has no change of its plan before it, which nobody would do then', async () => {
      await world.subscribe('head', 'Team');
      await world.subscribe('changing', 'Team');
      const change = await planChange('changing');
      expect(change.status, change.text).to.equal(200);
      const asChild = await group('head', 'changing');
      const asParent = await group('changing', 'head');
      const heirs = await ask('POST', `${subscriptionOf('changing')}/modify/execute`, {
        type: 'inheritance',
        inheritance_params: { external_customer_ids_to_inherit_subscription: ['ending'] },
      });
      for (const refused of [asChild, asParent, heirs]) {
        expect(refused.status, refused.text).to.equal(400);
        expect(refused.body.message).to.contain('plan_change is scheduled');
      }
    });
  });
});
