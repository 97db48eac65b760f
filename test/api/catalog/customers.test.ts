import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { ErrorAnswer } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/customers', () => {
  let api: TestApi;
  let count = 0;
  before(async () => {
    api = await startTestApi({ now: NOW });
  });
  after(() => api.stop());

  const externalId = () => `acme-${++count}`;
  const create = async (fields: Record<string, unknown> = {}) =>
    (await api.request('POST', '/customers', { body: { external_id: externalId(), ...fields } })).body;
  const total = async () => (await api.request('GET', '/customers')).body.pagination.total as number;

  const subscribe = async (customer_id: string, subscription_status: string) => {
    const row = {
      id: newId('subscription'),
      ...api.scope,
      customer_id,
      plan_id: 'plan_x',
      subscription_status,
      currency: 'usd',
      billing_cycle: 'anniversary',
      billing_period: 'MONTHLY',
      billing_anchor: NOW,
      start_date: NOW,
      current_period_start: NOW,
      current_period_end: '2026-04-15T12:00:00Z',
    };
    await api.services.postgres('subscriptions').insert(row);
  };

  describe('201', () => {
    it('answers every key of the contract', async () => {
      const external_id = externalId();
      const answer = await api.request('POST', '/customers', { body: { external_id } });
      expect(answer.status).to.equal(201);
      expect(answer.body.id).to.match(/^cust_[0-9A-HJKMNP-TV-Z]{26}$/);
      const { id: _id, created_by, updated_by, ...rest } = answer.body;
      expect(created_by).to.equal(updated_by).and.not.equal('');
      expect(rest).to.deep.equal({
        ...api.scope,
        external_id,
        tax_exempt: 'none',
        tax_ids: null,
        name: external_id,
        email: '',
        contact: '',
        address_line1: '',
        address_line2: '',
        address_city: '',
        address_state: '',
        address_postal_code: '',
        address_country: '',
        timezone: 'UTC',
        metadata: null,
        integrations: null,
        parent_customer: null,
        parent_customer_id: null,
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
    });

    it('keeps what is stated, and tells what has no effect', async () => {
      const body = {
        external_id: externalId(),
        name: 'Æcme ❤',
        email: 'a@example.com',
        contact: '+49 30 1234',
        address_line1: 'x'.repeat(255),
        address_line2: '2nd floor',
        address_city: 'Berlin',
        address_state: 'BE',
        address_postal_code: '10115',
        address_country: 'DE',
        timezone: 'Asia/Kolkata',
        metadata: { tier: 'gold' },
      };
      const sent = { ...body, skip_onboarding_workflow: true, tax_rate_overrides: [] };
      const answer = await api.request('POST', '/customers', { body: sent });
      expect(answer.status).to.equal(201);
      expect(answer.headers.get('x-ignored-keys')).to.equal('skip_onboarding_workflow');
      expect(answer.body).to.include({ ...body, metadata: answer.body.metadata });
      expect(answer.body.metadata).to.deep.equal({ tier: 'gold' });
      expect((await api.request('GET', `/customers/${answer.body.id}`)).body).to.deep.equal(answer.body);
    });
  });

  describe('400, and nothing is stored', () => {
    const wrong: [string, Record<string, unknown> | string, string][] = [
      ['no external id', { name: 'x' }, 'external_id'],
      ['a blank external id', { external_id: ' ' }, 'external_id'],
      ['an external id that no URL can name', { external_id: '..' }, 'external_id'],
      [
        'an email with 65 characters before the @',
        { external_id: 'x', email: `${'n'.repeat(65)}@example.com` },
        'email',
      ],
      ['an external id of 256 characters', { external_id: 'x'.repeat(256) }, 'external_id'],
      ['an external id that is a number', { external_id: 5 }, 'external_id'],
      ['an email without @', { external_id: 'x', email: 'nobody' }, 'email'],
      ['a country of three letters', { external_id: 'x', address_country: 'DEU' }, 'address_country'],
      ['a country that is not assigned', { external_id: 'x', address_country: 'XX' }, 'address_country'],
      ['a country in lower case', { external_id: 'x', address_country: 'de' }, 'address_country'],
      ['a timezone that does not exist', { external_id: 'x', timezone: 'Mars/Olympus' }, 'timezone'],
      ['an offset as timezone', { external_id: 'x', timezone: '+05:30' }, 'timezone'],
      ['a name of 256 characters', { external_id: 'x', name: 'n'.repeat(256) }, 'name'],
      ['a line of 256 characters', { external_id: 'x', address_line1: 'n'.repeat(256) }, 'address_line1'],
      ['a second line of 256 characters', { external_id: 'x', address_line2: 'n'.repeat(256) }, 'address_line2'],
      ['a city of 101 characters', { external_id: 'x', address_city: 'n'.repeat(101) }, 'address_city'],
      ['a state of 101 characters', { external_id: 'x', address_state: 'n'.repeat(101) }, 'address_state'],
      [
        'a postal code of 21 characters',
        { external_id: 'x', address_postal_code: '1'.repeat(21) },
        'address_postal_code',
      ],
      ['a contact of 21 characters', { external_id: 'x', contact: '1'.repeat(21) }, 'contact'],
      ['metadata that is a list', { external_id: 'x', metadata: ['a'] }, 'metadata'],
      ['metadata with a number', { external_id: 'x', metadata: { a: 1 } }, 'metadata.a'],
      [
        'a tax rate without a code',
        { external_id: 'x', tax_rate_overrides: [{}] },
        'tax_rate_overrides[0].tax_rate_code',
      ],
      ['an exemption that there is not', { external_id: 'x', tax_exempt: 'often' }, 'tax_exempt'],
      ['an array as body', '[]', 'body'],
    ];
    for (const [why, body, field] of wrong)
      it(why, async () => {
        const before = await total();
        const answer = await api.request('POST', '/customers', { body });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.code).to.equal('validation_error');
        expect(answer.body.details!.field).to.equal(field);
        expect(answer.body.message).to.include(field);
        expect(await total()).to.equal(before);
      });
  });

  describe('401, 403, 404 and 409', () => {
    it('401 without a key', async () => {
      expect((await api.request('POST', '/customers', { body: { external_id: 'x' }, key: null })).status).to.equal(401);
    });

    it('403 for a reader who writes', async () => {
      const key = await api.keyWithRoles(['all_reader']);
      expect((await api.request('POST', '/customers', { body: { external_id: 'x' }, key })).status).to.equal(403);
      expect((await api.request('GET', '/customers', { key })).status).to.equal(200);
    });

    it("404 for another tenant's customer, whatever is asked", async () => {
      const customer = await create({ name: 'Ours' });
      const { key } = await api.otherTenant();
      const asks: [string, string, unknown?][] = [
        ['GET', `/customers/${customer.id}`],
        ['GET', `/customers/external/${customer.external_id}`],
        ['GET', `/customers/lookup/${customer.external_id}`],
        ['PUT', `/customers/${customer.id}`, { name: 'Theirs' }],
        ['PUT', `/customers?id=${customer.id}`, { name: 'Theirs' }],
        ['PUT', `/customers?external_customer_id=${customer.external_id}`, { name: 'Theirs' }],
        ['DELETE', `/customers/${customer.id}`],
      ];
      for (const [method, path, body] of asks)
        expect((await api.request(method, path, { key, body })).status, `${method} ${path}`).to.equal(404);
      expect((await api.request('GET', '/customers', { key })).body.items).to.deep.equal([]);
      expect((await api.request('GET', `/customers/${customer.id}`)).body).to.deep.equal(customer);
    });

    it('409 for an external id that a published customer has; an archived one has given it back', async () => {
      const first = await create();
      const again = { body: { external_id: first.external_id } };
      const refused = await api.request('POST', '/customers', again);
      expect(refused.status).to.equal(409);
      expect(refused.body.code).to.equal('already_exists');
      await api.request('DELETE', `/customers/${first.id}`);
      expect((await api.request('POST', '/customers', again)).status).to.equal(201);
    });

    it('one of many equal requests at once wins', async () => {
      const body = { external_id: externalId() };
      const answers = await Promise.all(Array.from({ length: 8 }, () => api.request('POST', '/customers', { body })));
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([201, 409, 409, 409, 409, 409, 409, 409]);
    });
  });

  describe('PUT', () => {
    it('changes what is given and leaves the rest; metadata replaces the map, null clears', async () => {
      const customer = await create({ email: 'a@example.com', address_country: 'FR', metadata: { a: '1', b: '2' } });
      api.setNow('2026-03-15T13:00:00Z');
      const path = `/customers?id=${customer.id}` as const;
      const first = await api.request('PUT', path, {
        body: { metadata: { c: '3' }, email: null, address_city: 'Lyon' },
      });
      api.setNow(NOW);
      expect(first.status).to.equal(200);
      expect(first.body).to.deep.equal({
        ...customer,
        metadata: { c: '3' },
        email: '',
        address_city: 'Lyon',
        updated_at: '2026-03-15T13:00:00Z',
      });
      expect((await api.request('PUT', path, { body: {} })).body.metadata).to.deep.equal({ c: '3' });
      expect((await api.request('PUT', path, { body: { metadata: null } })).body.metadata).to.equal(null);
    });

    it('finds the customer by id, by external id, or by both when they agree', async () => {
      const [one, two] = [await create(), await create()];
      const ask = (query: string, name: string) => api.request('PUT', `/customers?${query}`, { body: { name } });
      expect((await ask(`external_customer_id=${one.external_id}`, 'A')).body).to.include({ id: one.id, name: 'A' });
      const both = `id=${one.id}&external_customer_id=`;
      expect((await ask(both + one.external_id, 'B')).body).to.include({ id: one.id, name: 'B' });
      expect((await ask(both + two.external_id, 'C')).status).to.equal(400);
      expect((await ask('', 'C')).status).to.equal(400);
      expect((await ask(`id=${newId('customer')}`, 'C')).status).to.equal(404);
      expect((await ask('external_customer_id=nobody', 'C')).status).to.equal(404);
      const older = (external: string) =>
        api.request('PUT', `/customers/${one.id}?external_customer_id=${external}`, { body: { name: 'D' } });
      expect((await older(two.external_id)).status).to.equal(400);
      expect((await api.request('GET', `/customers/${one.id}`)).body.name).to.equal('B');
      expect((await older(one.external_id)).body.name).to.equal('D');
    });

    const wrong: [string, Record<string, unknown>][] = [
      ['a blank external id', { external_id: '' }],
      ['a blank name', { name: '' }],
      ['a wrong email', { email: '@' }],
      ['a wrong country', { address_country: 'XX' }],
      ['a wrong timezone', { timezone: 'Nowhere' }],
      ['metadata that is a text', { metadata: 'a' }],
    ];
    for (const [why, body] of wrong)
      it(`400 for ${why}, and nothing changes`, async () => {
        const customer = await create();
        const answer = await api.request('PUT', `/customers/${customer.id}`, { body });
        expect(answer.status, answer.text).to.equal(400);
        expect((await api.request('GET', `/customers/${customer.id}`)).body).to.deep.equal(customer);
      });

    it('409 for the external id of another', async () => {
      const [one, two] = [await create(), await create()];
      const answer = await api.request('PUT', `/customers/${one.id}`, { body: { external_id: two.external_id } });
      expect(answer.status).to.equal(409);
    });

    it('400 for a new external id while a subscription runs: its usage is recorded under the old one', async () => {
      const customer = await create();
      await subscribe(customer.id, 'active');
      const renamed = await api.request('PUT', `/customers/${customer.id}`, { body: { external_id: externalId() } });
      expect(renamed.status).to.equal(400);
      expect(renamed.body).to.deep.include({ code: 'invalid_operation', details: { field: 'external_id' } });
      const same = { external_id: customer.external_id, name: 'Still' };
      expect((await api.request('PUT', `/customers/${customer.id}`, { body: same })).status).to.equal(200);
    });
  });

  describe('DELETE', () => {
    it('204 and archived: not listed, not found by external id, not deleted twice', async () => {
      const customer = await create();
      const answer = await api.request('DELETE', `/customers/${customer.id}`);
      expect(answer.status).to.equal(204);
      expect(answer.text).to.equal('');
      const asks = { customer_ids: [customer.id] };
      expect((await api.request('POST', '/customers/search', { body: asks })).body.pagination.total).to.equal(0);
      const archived = await api.request('POST', '/customers/search', { body: { ...asks, status: 'archived' } });
      expect(archived.body.items[0]!.status).to.equal('archived');
      expect((await api.request('GET', `/customers/external/${customer.external_id}`)).status).to.equal(404);
      expect((await api.request('PUT', `/customers/${customer.id}`, { body: { name: 'x' } })).status).to.equal(400);
      expect((await api.request('DELETE', `/customers/${customer.id}`)).status).to.equal(404);
      expect((await api.request('DELETE', `/customers/${newId('customer')}`)).status).to.equal(404);
    });

    for (const status of ['active', 'trialing', 'draft', 'incomplete'])
      it(`400 invalid_operation with a subscription that is ${status}`, async () => {
        const customer = await create();
        await subscribe(customer.id, status);
        const answer = await api.request('DELETE', `/customers/${customer.id}`);
        expect(answer.status).to.equal(400);
        expect(answer.body!.code).to.equal('invalid_operation');
        expect((await api.request('GET', `/customers/${customer.id}`)).body.status).to.equal('published');
      });

    it('204 when all subscriptions are cancelled', async () => {
      const customer = await create();
      await subscribe(customer.id, 'cancelled');
      expect((await api.request('DELETE', `/customers/${customer.id}`)).status).to.equal(204);
    });
  });

  describe('an external id that another customer had', () => {
    const NOON = '2026-03-15T12:00:00Z';
    let plan_id: string;
    before(async () => {
      plan_id = (await api.request('POST', '/plans', { body: { name: 'Pro' } })).body.id;
      const price = { entity_type: 'PLAN', entity_id: plan_id, type: 'FIXED', billing_model: 'FLAT_FEE', amount: '9' };
      const billed = { billing_period: 'MONTHLY', billing_cadence: 'RECURRING', invoice_cadence: 'ARREAR' };
      const money = { price_unit_type: 'FIAT', currency: 'usd' };
      expect((await api.request('POST', '/prices', { body: { ...price, ...billed, ...money } })).status).to.equal(201);
    });
    afterEach(() => api.setNow(NOW));

    const start = (customer_id: string, start_date: string, fields: Record<string, unknown> = {}) =>
      api.request('POST', '/subscriptions', {
        body: { customer_id, plan_id, currency: 'usd', billing_period: 'MONTHLY', start_date, ...fields },
      });
    /** Subscribed from February on, until 10 March; then it gives its external id up, at noon of the 15th. */
    const charged = async (giveUp: (id: string) => Promise<{ status: number }>) => {
      const former = await create();
      const { body } = await start(former.id, '2026-02-01T00:00:00Z');
      const cancel = { cancellation_type: 'immediate', cancel_at: '2026-03-10T00:00:00Z' };
      expect((await api.request('POST', `/subscriptions/${body.id}/cancel`, { body: cancel })).status).to.equal(200);
      const { body: found } = await api.request('GET', `/invoices?customer_id=${former.id}&invoice_status=DRAFT`);
      for (const { id } of found.items) {
        const early = await api.request('PUT', `/customers/${former.id}`, { body: { external_id: externalId() } });
        expect([early.status, early.body.code], 'its usage is on a draft').to.deep.equal([400, 'invalid_operation']);
        expect(early.body.details).to.deep.equal({ field: 'external_id' });
        expect((await api.request('POST', `/invoices/${id}/finalize`)).status).to.equal(200);
      }
      expect((await giveUp(former.id)).status).to.be.oneOf([200, 204]);
      api.setNow('2026-03-20T00:00:00Z');
      return { former, next: await create({ external_id: former.external_id }) };
    };
    const ways: [string, (id: string) => Promise<{ status: number }>][] = [
      ['archived', (id) => api.request('DELETE', `/customers/${id}`)],
      ['renamed', (id) => api.request('PUT', `/customers/${id}`, { body: { external_id: externalId() } })],
    ];
    for (const [how, giveUp] of ways)
      it(`and was charged by, until it was ${how}: the next one starts then at the earliest`, async () => {
        const { former, next } = await charged(giveUp);
        const early = await start(next.id, '2026-03-15T11:59:59.999Z');
        expect(early.status).to.equal(400);
        expect(early.body.details).to.include({ field: 'start_date', customer_id: former.id });
        expect((await start(next.id, NOON)).status).to.equal(201);
        const draft = (await start(next.id, NOON, { subscription_status: 'draft' })).body;
        const activate = (start_date: string) =>
          api.request('POST', `/subscriptions/${draft.id}/activate`, { body: { start_date } });
        expect((await activate('2026-03-01T00:00:00Z')).body.details?.field).to.equal('start_date');
        expect((await activate(NOON)).status).to.equal(200);
      });

    it('and that it was never charged by hinders nobody, nor does that of another tenant', async () => {
      const mistake = await create();
      await api.request('DELETE', `/customers/${mistake.id}`);
      const again = await create({ external_id: mistake.external_id });
      expect((await start(again.id, '2026-02-01T00:00:00Z')).status).to.equal(201);
      const { key } = await api.otherTenant();
      const theirs = await api.request('POST', '/customers', { body: { external_id: again.external_id }, key });
      expect(theirs.status).to.equal(201);
      const { rows } = await api.services.postgres.raw(
        'select count(*)::int as n from given_up_external_ids where customer_id = ? or tenant_id = ?',
        [again.id, theirs.body.tenant_id],
      );
      expect(rows[0].n).to.equal(0);
    });
  });

  describe('lists and searches', () => {
    let mine: string;
    let other: { key: string };
    const names = (answer: { body: { items: { name: string }[] } }) => answer.body.items.map(({ name }) => name);
    const search = (body: unknown) => api.request('POST', '/customers/search', { body, key: mine });

    before(async () => {
      other = await api.otherTenant();
      mine = other.key;
      const people = [
        { external_id: 'a', name: 'Ada', email: 'ada@example.com', metadata: { tier: 'gold', region: 'eu' } },
        { external_id: 'b', name: 'Bob', email: 'bob@example.com', metadata: { tier: 'gold', region: 'us' } },
        { external_id: 'c', name: 'Cy', email: 'cy@example.com', metadata: { tier: 'iron' } },
      ];
      for (const [hour, body] of people.entries()) {
        api.setNow(`2026-03-16T0${hour}:00:00Z`);
        await api.request('POST', '/customers', { body, key: mine });
      }
      api.setNow(NOW);
    });

    const cases: [string, Record<string, unknown>, string[]][] = [
      ['nothing asked: newest first', {}, ['Cy', 'Bob', 'Ada']],
      ['oldest first', { order: 'asc' }, ['Ada', 'Bob', 'Cy']],
      ['a page', { limit: 1, offset: 1 }, ['Bob']],
      ['external id', { external_id: 'b' }, ['Bob']],
      ['external ids', { external_ids: ['a', 'c'] }, ['Cy', 'Ada']],
      ['email', { email: 'ada@example.com' }, ['Ada']],
      ['one metadata pair', { metadata: { tier: 'gold' } }, ['Bob', 'Ada']],
      ['all metadata pairs must match', { metadata: { tier: 'gold', region: 'us' } }, ['Bob']],
      ['metadata that nobody has', { metadata: { tier: 'lead' } }, []],
      ['children of a parent that has none', { parent_customer_ids: ['cust_x'] }, []],
      ['start and end', { start_time: '2026-03-16T00:30:00Z', end_time: '2026-03-16T01:30:00Z' }, ['Bob']],
      ['sorted by name', { sort: [{ field: 'name', direction: 'asc' }] }, ['Ada', 'Bob', 'Cy']],
      [
        'a filter',
        { filters: [{ field: 'name', operator: 'contains', data_type: 'string', value: { string: 'b' } }] },
        ['Bob'],
      ],
    ];
    for (const [what, body, expected] of cases)
      it(what, async () => {
        expect(names(await search(body))).to.deep.equal(expected);
      });

    it('takes the same from a query string', async () => {
      const list = async (query: string) => names(await api.request('GET', `/customers?${query}`, { key: mine }));
      expect(await list('external_ids=a,c')).to.deep.equal(['Cy', 'Ada']);
      expect(await list('external_ids=a&external_ids=c')).to.deep.equal(['Cy', 'Ada']);
      expect(await list('metadata[tier]=gold&metadata[region]=eu')).to.deep.equal(['Ada']);
      expect(await list('email=cy@example.com&limit=5')).to.deep.equal(['Cy']);
    });

    it('tells the total before paging and echoes the page', async () => {
      expect((await search({ limit: 2, offset: 1 })).body.pagination).to.deep.equal({
        total: 3,
        limit: 2,
        offset: 1,
        next_cursor: null,
      });
    });

    const wrong: [string, Record<string, unknown>][] = [
      ['limit 0', { limit: 0 }],
      ['limit 1001', { limit: 1001 }],
      ['a negative offset', { offset: -1 }],
      ['an unknown field to sort by', { sort: [{ field: 'password', direction: 'asc' }] }],
      ['an expansion that is not there', { expand: 'plans' }],
      ['metadata that is a text', { metadata: 'gold' }],
    ];
    for (const [why, body] of wrong)
      it(`400 for ${why}`, async () => {
        expect((await search(body)).status).to.equal(400);
      });
  });

  describe('customers that belong to another', () => {
    const create = async (external_id: string, fields: Record<string, unknown> = {}) => {
      const answer = await api.request('POST', '/customers', { body: { external_id, ...fields } });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    const put = (id: string, body: unknown) => api.request('PUT', `/customers/${id}`, { body });
    const refused = async (answer: { status: number; text: string; body: Partial<ErrorAnswer> }, field: string) => {
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    };

    it('are made, found, moved and let go', async () => {
      const group = await create('group');
      const north = await create('north', { parent_customer_id: group.id });
      const south = await create('south', { parent_customer_external_id: 'group' });
      expect(north).to.deep.include({ parent_customer_id: group.id, parent_customer: group });
      expect((await api.request('GET', `/customers/${south.id}`)).body).to.deep.equal(south);
      const children = async () =>
        (await api.request('POST', '/customers/search', { body: { parent_customer_ids: [group.id] } })).body.items;
      expect(await children()).to.have.deep.members([south, north]);
      expect((await put(south.id, { name: 'South' })).body.parent_customer_id).to.equal(group.id);
      expect((await put(south.id, { parent_customer_id: null })).body).to.include({ parent_customer: null });
      expect(await children()).to.deep.equal([north]);
      const refusal = await api.request('DELETE', `/customers/${group.id}`);
      expect(refusal.body).to.include({ code: 'invalid_operation', http_status_code: 400 });
      await api.request('DELETE', `/customers/${north.id}`);
      expect((await api.request('DELETE', `/customers/${group.id}`)).status).to.equal(204);
    });

    it('are of two levels, and of one tenant', async () => {
      const top = await create('top');
      const middle = await create('middle', { parent_customer_id: top.id });
      const loose = await create('loose');
      const field = 'parent_customer_id';
      await refused(await put(loose.id, { parent_customer_id: middle.id }), field);
      await refused(await put(top.id, { parent_customer_id: loose.id }), field);
      await refused(await put(top.id, { parent_customer_id: middle.id }), field);
      await refused(await put(loose.id, { parent_customer_id: loose.id }), field);
      const disagree = { parent_customer_id: top.id, parent_customer_external_id: 'loose' };
      await refused(await put(loose.id, disagree), 'parent_customer_external_id');
      expect((await put(loose.id, { parent_customer_id: newId('customer') })).status).to.equal(404);
      const { key } = await api.otherTenant();
      const body = { external_id: 'theirs', parent_customer_id: top.id };
      expect((await api.request('POST', '/customers', { body, key })).status).to.equal(404);
    });

    it('never close a ring, though both ends change at one time', async () => {
      const [one, two] = [await create('one end'), await create('other end')];
      const answers = await Promise.all([
        put(one.id, { parent_customer_id: two.id }),
        put(two.id, { parent_customer_id: one.id }),
      ]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
    });
  });

  it('subscriptions of a customer by its external id', async () => {
    expect((await api.request('GET', '/customers/external/nobody-is-called-so/subscriptions')).status).to.equal(404);
    await api.request('POST', '/customers', { body: { external_id: 'without any' } });
    const answer = await api.request('GET', '/customers/external/without%20any/subscriptions?limit=5');
    expect(answer.body).to.deep.equal({ items: [], pagination: { total: 0, limit: 5, offset: 0, next_cursor: null } });
  });
});
