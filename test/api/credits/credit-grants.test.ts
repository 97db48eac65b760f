import { expect } from 'chai';
import type { CreditGrant, ErrorAnswer, Plan, Subscription } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/creditgrants and /costs', () => {
  let api: TestApi;
  let plan: Plan;
  let subscription: Subscription;
  before(async () => {
    api = await startTestApi({ now: NOW });
    plan = await created('/plans', { name: 'Pro' });
    await created('/prices', price('PLAN', plan.id));
    const customer = await created('/customers', { external_id: 'acme' });
    subscription = await created('/subscriptions', {
      customer_id: customer.id,
      plan_id: plan.id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      start_date: NOW,
      end_date: '2027-03-15T12:00:00Z',
    });
  });
  after(() => api.stop());

  const send = <Method extends string, Path extends string>(
    method: Method,
    path: Path,
    body?: unknown,
    key?: string | null,
  ) => api.request(method, path, { body, ...(key === undefined ? {} : { key }) });
  async function created<Path extends string>(path: Path, body: unknown) {
    const answer = await send('POST', path, body);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  }
  const price = (entity_type: string, entity_id: string) => ({
    entity_type,
    entity_id,
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    amount: '10',
    currency: 'usd',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
  });
  const refused = ({ status, body }: { status: number; body: Partial<ErrorAnswer> | null }) => [
    status,
    body!.details?.field,
  ];

  describe('credit grants', () => {
    const ofPlan = (fields: Record<string, unknown> = {}) => ({
      name: 'Monthly',
      scope: 'PLAN',
      plan_id: plan.id,
      credits: '100',
      cadence: 'RECURRING',
      period: 'MONTHLY',
      period_count: 1,
      ...fields,
    });
    it('a new subscription brings its own, which move with the start of a draft', async () => {
      const monthly = { credits: '5', cadence: 'RECURRING', period: 'MONTHLY', period_count: 1 };
      const request = {
        external_customer_id: 'acme',
        plan_id: plan.id,
        currency: 'usd',
        billing_period: 'MONTHLY',
        subscription_status: 'draft',
        credit_grants: [
          { name: 'Welcome', credits: '50', cadence: 'ONETIME' },
          { name: 'Later', ...monthly, start_date: '2026-08-01T00:00:00Z' },
        ],
      };
      const { id, credit_grants } = await created('/subscriptions', request);
      const own = (grants: CreditGrant[]) =>
        grants
          .filter(({ scope }) => scope === 'SUBSCRIPTION')
          .map(({ name, subscription_id, start_date, credit_grant_anchor }) => {
            expect(subscription_id).to.equal(id);
            return [name, start_date, credit_grant_anchor];
          });
      const later = ['Later', '2026-08-01T00:00:00Z', '2026-08-01T00:00:00Z'];
      expect(own(credit_grants)).to.deep.equal([['Welcome', '2026-03-15T12:00:00Z', '2026-03-15T12:00:00Z'], later]);
      const start_date = '2026-04-01T00:00:00Z';
      const { body } = await send('POST', `/subscriptions/${id}/activate`, { start_date });
      expect(own(body.credit_grants)).to.deep.equal([['Welcome', start_date, start_date], later]);
      const wrong = (fields: object) =>
        send('POST', '/subscriptions', { ...request, credit_grants: [{ ...request.credit_grants[0], ...fields }] });
      expect(refused(await wrong({ plan_id: plan.id }))).to.deep.equal([400, 'credit_grants[0].plan_id']);
      expect(refused(await wrong({ start_date: '2026-01-01T00:00:00Z' }))).to.deep.equal([
        400,
        'credit_grants[0].start_date',
      ]);
    });

    const ofSubscription = (fields: Record<string, unknown> = {}) => ({
      name: 'Welcome',
      scope: 'SUBSCRIPTION',
      subscription_id: subscription.id,
      credits: '5',
      cadence: 'ONETIME',
      start_date: NOW,
      ...fields,
    });

    it('201 answers every key of the contract, and it is read again', async () => {
      const body = ofPlan({
        credits: 10.5,
        expiration_type: 'duration',
        expiration_duration: 2,
        expiration_duration_unit: 'week',
        priority: 3,
        metadata: { a: 'b' },
      });
      const made = await created('/creditgrants', body);
      const { id, created_by: _by, updated_by: _too, ...rest } = made;
      expect(id).to.match(/^cg_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...body,
        ...api.scope,
        credits: '10.5',
        expiration_type: 'DURATION',
        expiration_duration_unit: 'WEEK',
        subscription_id: null,
        addon_id: null,
        start_date: null,
        end_date: null,
        credit_grant_anchor: null,
        conversion_rate: null,
        topup_conversion_rate: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect((await send('GET', `/creditgrants/${id}`)).body).to.deep.equal(made);
      const { body: list } = await send('GET', `/plans?plan_ids=${plan.id}&expand=credit_grant`);
      expect(list.items[0]!.credit_grants).to.deep.equal([made]);
      expect((await send('GET', `/plans?plan_ids=${plan.id}`)).body.items[0]!.credit_grants).to.equal(null);
    });

    it('of a subscription has its periods counted from its start', async () => {
      const made = await created('/creditgrants', ofSubscription());
      expect(made).to.include({ expiration_type: 'NEVER', credit_grant_anchor: '2026-03-15T12:00:00Z', plan_id: null });
      const credit_grant_anchor = '2026-04-01T00:00:00Z';
      expect(await created('/creditgrants', ofSubscription({ credit_grant_anchor }))).to.include({
        credit_grant_anchor,
      });
    });

    const before = '2026-03-15T11:59:59Z';
    const wrong: [string, () => Record<string, unknown>, number, string?][] = [
      ['no credits', () => ofPlan({ credits: '0' }), 400, 'credits'],
      ['credits below 0', () => ofPlan({ credits: '-1' }), 400, 'credits'],
      ['a priority below 0', () => ofPlan({ priority: -1 }), 400, 'priority'],
      ['no plan', () => ofPlan({ plan_id: null }), 400, 'plan_id'],
      ['a plan that is not there', () => ofPlan({ plan_id: 'plan_x' }), 404, 'plan_id'],
      ['a plan and a subscription', () => ofPlan({ subscription_id: subscription.id }), 400, 'subscription_id'],
      ['a plan with a start', () => ofPlan({ start_date: NOW }), 400, 'start_date'],
      ['a plan with an end', () => ofPlan({ end_date: NOW }), 400, 'end_date'],
      ['no period', () => ofPlan({ period: null }), 400, 'period'],
      ['no count of periods', () => ofPlan({ period_count: null }), 400, 'period_count'],
      ['0 periods', () => ofPlan({ period_count: 0 }), 400, 'period_count'],
      ['a period of what is given once', () => ofPlan({ cadence: 'ONETIME' }), 400, 'period'],
      ['no duration', () => ofPlan({ expiration_type: 'DURATION' }), 400, 'expiration_duration'],
      [
        'a duration of 0',
        () => ofPlan({ expiration_type: 'DURATION', expiration_duration: 0, expiration_duration_unit: 'DAY' }),
        400,
        'expiration_duration',
      ],
      ['a duration of what never expires', () => ofPlan({ expiration_duration: 1 }), 400, 'expiration_duration'],
      ['a rate of 0', () => ofPlan({ conversion_rate: '0' }), 400, 'conversion_rate'],
      ['another rate than its others', () => ofPlan({ conversion_rate: '2' }), 400, 'conversion_rate'],
      ['another top-up rate', () => ofPlan({ topup_conversion_rate: '2' }), 400, 'topup_conversion_rate'],
      ['no subscription', () => ofSubscription({ subscription_id: '' }), 400, 'subscription_id'],
      ['a subscription that is not there', () => ofSubscription({ subscription_id: 'subs_x' }), 404, 'subscription_id'],
      ['no start', () => ofSubscription({ start_date: null }), 400, 'start_date'],
      ['a start before the subscription', () => ofSubscription({ start_date: before }), 400, 'start_date'],
      ['an end before its start', () => ofSubscription({ end_date: before }), 400, 'end_date'],
      ['an end after the subscription', () => ofSubscription({ end_date: '2027-03-15T12:00:01Z' }), 400, 'end_date'],
      ['an anchor before its start', () => ofSubscription({ credit_grant_anchor: before }), 400, 'credit_grant_anchor'],
    ];
    for (const [why, body, status, field] of wrong)
      it(`${status} for ${why}`, async () => {
        expect(refused(await send('POST', '/creditgrants', body()))).to.deep.equal([status, field]);
      });

    it('of an add-on is shown with it, keeps to its rates, and is archived with it', async () => {
      const addon = await created('/addons', { name: 'Boost', lookup_key: 'boost' });
      const ofAddon = { ...ofPlan(), scope: 'ADDON', plan_id: null, addon_id: addon.id, conversion_rate: '2' };
      const made = await created('/creditgrants', ofAddon);
      expect((await send('GET', `/addons/${addon.id}`)).body.credit_grants).to.deep.equal([made]);
      const other = await send('POST', '/creditgrants', { ...ofAddon, conversion_rate: '1' });
      expect(refused(other)).to.deep.equal([400, 'conversion_rate']);
      expect((await send('GET', `/creditgrants?addon_ids=${addon.id}`)).body.items).to.deep.equal([made]);
      expect((await send('GET', `/addons/${addon.id}/creditgrants`)).body.items).to.deep.equal([made]);
      expect((await send('GET', '/addons/addon_x/creditgrants')).status).to.equal(404);
      await send('DELETE', `/addons/${addon.id}`);
      expect((await send('GET', `/creditgrants/${made.id}`)).body.status).to.equal('archived');
      expect((await send('POST', '/creditgrants', ofAddon)).status).to.equal(404);
    });

    it('the rates of a plan are compared as they hold: 1.0 is what is not stated', async () => {
      await created('/creditgrants', ofPlan({ conversion_rate: '1.0', topup_conversion_rate: '1' }));
    });

    it('PUT changes the name, the metadata and the end of one of a subscription', async () => {
      const made = await created('/creditgrants', ofSubscription());
      const put = (id: string, body: unknown) => send('PUT', `/creditgrants/${id}`, body);
      const changes = { name: 'Hello', metadata: { c: 'd' }, end_date: '2026-06-01T00:00:00Z' };
      expect((await put(made.id, changes)).body).to.deep.equal({ ...made, ...changes });
      expect(refused(await put(made.id, { end_date: before }))).to.deep.equal([400, 'end_date']);
      expect((await put(made.id, { end_date: null })).body.end_date).to.equal(null);
      expect(refused(await put(made.id, { credit: '6' }))).to.deep.equal([400, 'credit']);
      const template = await created('/creditgrants', ofPlan());
      expect(refused(await put(template.id, { end_date: NOW }))).to.deep.equal([400, 'end_date']);
      expect((await put(template.id, { name: 'Each month', end_date: null })).body.name).to.equal('Each month');
    });

    it('DELETE ends one of a subscription, at once or from a date on, and is 400 the second time', async () => {
      const archived = async (stated: Record<string, unknown>, body?: unknown) => {
        const { id } = await created('/creditgrants', stated);
        const answer = await send('DELETE', `/creditgrants/${id}`, body);
        expect(answer.status, answer.text).to.equal(200);
        expect((await send('DELETE', `/creditgrants/${id}`)).body.code).to.equal('invalid_operation');
        const read = (await send('GET', `/creditgrants/${id}`)).body;
        expect(read.status).to.equal('archived');
        return read.end_date;
      };
      expect(await archived(ofSubscription())).to.equal('2026-03-15T12:00:00Z');
      const later = { effective_date: '2026-05-01T00:00:00Z' };
      const start_date = '2026-04-01T00:00:00Z';
      expect(await archived(ofSubscription({ start_date })), 'it never began').to.equal(start_date);
      expect(await archived(ofPlan(), { effective_date: NOW })).to.equal(null);

      const { id } = await created('/creditgrants', ofPlan());
      expect(refused(await send('DELETE', `/creditgrants/${id}`, later))).to.deep.equal([400, 'effective_date']);
      const ending = await created('/creditgrants', ofSubscription({ end_date: '2026-04-30T00:00:00Z' }));
      expect(refused(await send('DELETE', `/creditgrants/${ending.id}`, later))).to.deep.equal([400, 'effective_date']);
    });

    it('DELETE from a date ahead: one of a subscription stays until then, and may end earlier', async () => {
      const { id } = await created('/creditgrants', ofSubscription());
      const end = (effective_date: string) => send('DELETE', `/creditgrants/${id}`, { effective_date });
      const read = async () => (await send('GET', `/creditgrants/${id}`)).body;
      expect((await end('2026-05-01T00:00:00Z')).status).to.equal(200);
      expect(await read()).to.include({ status: 'published', end_date: '2026-05-01T00:00:00Z' });
      expect((await end('2026-04-01T00:00:00Z')).status).to.equal(200);
      expect(await read()).to.include({ status: 'published', end_date: '2026-04-01T00:00:00Z' });
      expect((await send('DELETE', `/creditgrants/${id}`)).status).to.equal(200);
      expect(await read()).to.include({ status: 'archived', end_date: '2026-03-15T12:00:00Z' });
    });

    it('are shown with each subscription that gets them: its own, and those of its plan, not of another', async () => {
      const shown = async (id: string) =>
        (await send('GET', `/subscriptions/${id}`)).body.credit_grants.map((one) => one.id);
      const before = await shown(subscription.id);
      const own = await created('/creditgrants', ofSubscription());
      const template = await created('/creditgrants', ofPlan());
      const other = await created('/plans', { name: 'Other' });
      await created('/prices', price('PLAN', other.id));
      const theirs = await created('/creditgrants', ofPlan({ plan_id: other.id }));
      const terms = { plan_id: other.id, currency: 'usd', billing_period: 'MONTHLY', external_customer_id: 'acme' };
      const second = await created('/subscriptions', terms);
      expect(second.credit_grants).to.deep.equal([theirs]);
      expect(await shown(subscription.id)).to.have.members([...before, own.id]);
      const { items } = (await send('POST', '/subscriptions/search', {})).body;
      const listed = new Map(items.map((one) => [one.id, one.credit_grants.map(({ id }) => id)]));
      expect(listed.get(second.id)).to.deep.equal([theirs.id]);
      // What the plan grants since then is for others.
      expect(listed.get(subscription.id)).to.include(own.id).and.not.include(template.id);
      await send('DELETE', `/creditgrants/${theirs.id}`);
      expect(await shown(second.id)).to.deep.equal([]);
    });

    it('are listed: published ones, by plan, subscription, scope, id', async () => {
      const own = await created('/plans', { name: 'Own' });
      const [first, second] = [
        await created('/creditgrants', ofPlan({ plan_id: own.id })),
        await created('/creditgrants', ofPlan({ plan_id: own.id, credits: '7' })),
      ];
      await send('DELETE', `/creditgrants/${first.id}`);
      const ids = async (path: `/creditgrants?${string}` | `/plans/${string}/creditgrants`) =>
        (await send('GET', path)).body.items.map((one) => one.id);
      expect(await ids(`/creditgrants?plan_ids=${own.id}`)).to.deep.equal([second.id]);
      expect(await ids(`/creditgrants?plan_ids=${own.id}&status=archived`)).to.deep.equal([first.id]);
      expect(await ids(`/creditgrants?credit_grant_ids=${second.id}&scope=subscription`)).to.deep.equal([]);
      expect(await ids(`/creditgrants?credit_grant_ids=${second.id}&scope=plan`)).to.deep.equal([second.id]);
      expect(await ids(`/creditgrants?subscription_ids=${subscription.id}`)).to.not.include(second.id);
      expect(await ids(`/plans/${own.id}/creditgrants`)).to.deep.equal([second.id]);
      expect((await send('GET', '/plans/plan_x/creditgrants')).status).to.equal(404);
      const copy = await created(`/plans/${own.id}/clone`, { name: 'Copy', lookup_key: 'copy' });
      expect(copy.credit_grants!.map((one) => [one.credits, one.plan_id])).to.deep.equal([['7', copy.id]]);
      expect(copy.credit_grants![0]!.id).to.not.equal(second.id);
    });

    it('401, 403, and 404 for what another tenant has', async () => {
      const { id } = await created('/creditgrants', ofPlan());
      expect((await send('GET', `/creditgrants/${id}`, undefined, null)).status).to.equal(401);
      const reader = await api.keyWithRoles(['all_reader']);
      expect((await send('POST', '/creditgrants', ofPlan(), reader)).status).to.equal(403);
      const { key } = await api.otherTenant();
      const asks: [string, string, unknown?][] = [
        ['GET', `/creditgrants/${id}`],
        ['PUT', `/creditgrants/${id}`, { name: 'Theirs' }],
        ['DELETE', `/creditgrants/${id}`],
        ['GET', `/plans/${plan.id}/creditgrants`],
        ['POST', '/creditgrants', ofPlan()],
        ['POST', '/creditgrants', ofSubscription()],
      ];
      for (const [method, path, body] of asks)
        expect((await send(method, path, body, key)).status, `${method} ${path}`).to.equal(404);
    });
  });

  describe('cost sheets', () => {
    const sheet = async (name: string, fields: Record<string, unknown> = {}) =>
      (await created('/costs', { name, ...fields })).costsheet;
    const active = () => send('GET', '/costs/active');

    it('201, wrapped; read wrapped and flat; the one that was made last is the active one', async () => {
      expect((await active()).status).to.equal(404);
      const made = await sheet('Models', { lookup_key: 'models', metadata: { a: 'b' } });
      const { id, created_by: _by, updated_by: _too, ...rest } = made;
      expect(id).to.match(/^cost_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...api.scope,
        name: 'Models',
        lookup_key: 'models',
        description: null,
        metadata: { a: 'b' },
        prices: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect((await send('GET', `/costs/${id}`)).body).to.deep.equal({ ...made, costsheet: made });
      const own = await created('/prices', price('COSTSHEET', id));
      expect(own.display_name).to.equal('Models');
      const shown = (await send('GET', `/costs/${id}?expand=prices,meters`)).body;
      expect(shown.prices).to.deep.equal([own]);
      expect((await active()).body).to.deep.equal(shown.costsheet);

      const second = await sheet('Second');
      expect((await active()).body.id).to.equal(second.id);
      const gone = await send('DELETE', `/costs/${second.id}`);
      expect([gone.status, gone.body.id]).to.deep.equal([200, second.id]);
      expect((await send('GET', `/costs/${second.id}`)).body.status).to.equal('deleted');
      expect((await active()).body.id).to.equal(id);
      expect((await send('POST', '/prices', price('COSTSHEET', second.id))).status).to.equal(404);
      await sheet('Second');
    });

    it('PUT changes what is given; 409 for a name or a key that is there; 400 without a name', async () => {
      const made = await sheet('Third', { lookup_key: 'third' });
      const put = (body: unknown) => send('PUT', `/costs/${made.id}`, body);
      const answer = await put({ description: 'x', lookup_key: null });
      expect(answer.body.costsheet).to.deep.equal({ ...made, description: 'x', lookup_key: null });
      expect((await put({ name: 'Models' })).status).to.equal(409);
      expect((await put({ lookup_key: 'models' })).status).to.equal(409);
      expect((await send('POST', '/costs', { name: 'Models' })).status).to.equal(409);
      expect(refused(await send('POST', '/costs', { name: '' }))).to.deep.equal([400, 'name']);
      expect((await put({ name: 'Fourth' })).body.costsheet.name).to.equal('Fourth');
    });

    it('are searched, in the spelling of the house and in that of the published client', async () => {
      const { key, scope } = await api.otherTenant();
      for (const name of ['A', 'B', 'C']) await send('POST', '/costs', { name, lookup_key: `key-${name}` }, key);
      const found = async (body: unknown) => {
        const answer = await send('POST', '/costs/search', body, key);
        expect(answer.status, answer.text).to.equal(200);
        return answer.body.items.map((one) => one.name);
      };
      const sort = [{ field: 'name', direction: 'asc' }];
      expect(await found({ sort })).to.deep.equal(['A', 'B', 'C']);
      expect(await found({ sort, limit: 1, offset: 1 })).to.deep.equal(['B']);
      expect(await found({ sort, queryFilter: { limit: 1, offset: 1 } })).to.deep.equal(['B']);
      expect(await found({ queryFilter: { sort: 'name', order: 'asc' } })).to.deep.equal(['A', 'B', 'C']);
      expect(await found({ queryFilter: { status: 'deleted' } })).to.deep.equal([]);
      expect(await found({ timeRangeFilter: { end_time: '2026-01-01T00:00:00Z' } })).to.deep.equal([]);
      expect(await found({ lookupKey: 'key-B' })).to.deep.equal(['B']);
      expect(await found({ lookup_key: 'key-C', name: 'C' })).to.deep.equal(['C']);
      expect(await found({ sort, tenantID: scope.tenant_id, environmentID: scope.environment_id })).to.have.length(3);
      const { id } = (await send('POST', '/costs/search', { name: 'A' }, key)).body.items[0]!;
      expect(await found({ costsheetIDs: [id] })).to.deep.equal(['A']);
      expect(await found({ costsheet_ids: [id] })).to.deep.equal(['A']);
      const other = await send('POST', '/costs/search', { tenantID: api.scope.tenant_id }, key);
      expect(refused(other)).to.deep.equal([400, 'tenantID']);
    });

    it('401, 403, and 404 for what another tenant has', async () => {
      const { id } = (await active()).body;
      expect((await send('GET', `/costs/${id}`, undefined, null)).status).to.equal(401);
      const reader = await api.keyWithRoles(['all_reader']);
      expect((await send('POST', '/costs', { name: 'x' }, reader)).status).to.equal(403);
      const { key } = await api.otherTenant();
      const asks: [string, string, unknown?][] = [
        ['GET', '/costs/active'],
        ['GET', `/costs/${id}`],
        ['PUT', `/costs/${id}`, { name: 'Theirs' }],
        ['DELETE', `/costs/${id}`],
        ['POST', '/prices', price('COSTSHEET', id)],
      ];
      for (const [method, path, body] of asks)
        expect((await send(method, path, body, key)).status, `${method} ${path}`).to.equal(404);
    });
  });
});
