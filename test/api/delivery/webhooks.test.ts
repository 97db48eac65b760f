/** Endpoints, system events and deliveries over HTTP. How deliveries go: test/actions/delivery/webhooks. */
import { expect } from 'chai';
import { SYSTEM_EVENT_NAMES } from '../../../core/platform/system-event/catalogue.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('webhooks over HTTP', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const URL_ = 'https://hooks.example.com/in';
  const create = async (fields: Record<string, unknown> = {}, key?: string) =>
    api.request('POST', '/webhooks/endpoints', { body: { url: URL_, ...fields }, ...(key ? { key } : {}) });
  const at = (id: string) => `/webhooks/endpoints/${id}` as const;

  describe('endpoints', () => {
    it('201: the secret is shown once, and masked from then on', async () => {
      const { status, body } = await create({ description: 'Books', metadata: { team: 'billing' } });
      expect(status).to.equal(201);
      expect(body.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(body.endpoint).to.deep.include({
        url: URL_,
        description: 'Books',
        event_names: [],
        endpoint_status: 'enabled',
        previous_secret_expires_at: null,
        disabled_reason: null,
        failing_since: null,
        metadata: { team: 'billing' },
      });
      const shown = await api.request('GET', at(body.endpoint.id));
      const listed = await api.request('GET', '/webhooks/endpoints');
      const changed = await api.request('PUT', at(body.endpoint.id), { body: { description: null } });
      expect([shown.status, listed.status, changed.status]).to.deep.equal([200, 200, 200]);
      for (const { text } of [shown, listed, changed]) expect(text).to.not.include(body.secret);
      expect(shown.body).to.deep.equal(body.endpoint);
      expect(changed.body.description).to.equal(null);
    });

    for (const [said, url] of [
      ['HTTPS://Hooks.Example.com/In', 'https://hooks.example.com/In'],
      [' https://hooks.example.com ', 'https://hooks.example.com/'],
    ])
      it(`201: the address ${JSON.stringify(said)} is kept as it is sent to`, async () => {
        const { status, body } = await create({ url: said });
        expect([status, body.endpoint?.url]).to.deep.equal([201, url]);
      });

    it('201: names in any case, and those that others have for an event', async () => {
      const names = ['Customer.Created', 'invoice.update.finalized'];
      const { body } = await create({ event_names: names });
      expect(body.endpoint.event_names).to.deep.equal(['customer.created', 'invoice.finalized']);
    });

    for (const [what, fields, field] of [
      ['no http', { url: 'ftp://example.com' }, 'url'],
      ['a password', { url: 'https://a:b@example.com' }, 'url'],
      ['no URL', { url: 'example.com' }, 'url'],
      ['a name that there is not', { event_names: ['customer.painted'] }, 'event_names'],
      ['a key that there is not', { secret: 'whsec_mine' }, 'secret'],
    ] as const)
      it(`400: ${what}`, async () => {
        const { status, body } = await create(fields);
        expect([status, body.code]).to.deep.equal([400, 'validation_error']);
        expect(body.message).to.include(field);
      });

    it('200: a new secret, with the time for which the one before is good', async () => {
      const { body } = await create();
      const path = `${at(body.endpoint.id)}/secret/rotate` as const;
      const rotated = await api.request('POST', path, { body: {} });
      expect(rotated.status).to.equal(200);
      expect(rotated.body.secret)
        .to.match(/^whsec_/)
        .and.not.equal(body.secret);
      expect(rotated.body.endpoint.previous_secret_expires_at).to.equal('2026-03-16T12:00:00Z');
      const atOnce = await api.request('POST', path, { body: { overlap_hours: 0 } });
      expect(atOnce.body.endpoint.previous_secret_expires_at).to.equal(null);
      expect((await api.request('POST', path, { body: { overlap_hours: 169 } })).status).to.equal(400);
    });

    it('disabled and enabled by hand', async () => {
      const { body } = await create();
      const off = await api.request('PUT', at(body.endpoint.id), { body: { endpoint_status: 'Disabled' } });
      expect(off.body).to.deep.include({ endpoint_status: 'disabled', disabled_reason: 'it was disabled by hand' });
      const found = await api.request('GET', '/webhooks/endpoints?endpoint_status=disabled');
      expect(found.body.items.map(({ id }: { id: string }) => id)).to.deep.equal([body.endpoint.id]);
      const on = await api.request('PUT', at(body.endpoint.id), { body: { endpoint_status: 'enabled' } });
      expect(on.body).to.deep.include({ endpoint_status: 'enabled', disabled_at: null, disabled_reason: null });
    });

    it('204, and then it is changed no more; what waited for it is given up', async () => {
      const { body } = await create();
      const { id } = body.endpoint;
      expect((await api.request('POST', `${at(id)}/test`)).status).to.equal(202);
      expect((await api.request('DELETE', at(id))).status).to.equal(204);
      expect((await api.request('DELETE', at(id))).status).to.equal(404);
      expect((await api.request('PUT', at(id), { body: {} })).status).to.equal(404);
      expect((await api.request('GET', at(id))).body.status).to.equal('deleted');
      const { items } = (await api.request('GET', `/webhooks/deliveries?endpoint_ids=${id}`)).body;
      expect(items[0]).to.deep.include({ delivery_status: 'failed', failure_reason: 'the endpoint was deleted' });
      const listed = await api.request('GET', '/webhooks/endpoints?limit=1000');
      expect(listed.text).to.not.include(id);
    });

    it('202: a test is a delivery to it alone, whatever its filter', async () => {
      await create();
      const { body } = await create({ event_names: ['invoice.finalized'] });
      const { status, body: delivery } = await api.request('POST', `${at(body.endpoint.id)}/test`);
      expect(status).to.equal(202);
      expect(delivery).to.deep.include({
        endpoint_id: body.endpoint.id,
        event_name: 'webhook_endpoint.test',
        delivery_status: 'pending',
      });
      const of = await api.request('GET', `/webhooks/deliveries?system_event_ids=${delivery.system_event_id}`);
      expect(of.body.pagination.total).to.equal(1);
      const detail = await api.request('GET', `/webhooks/deliveries/${delivery.id}`);
      expect(detail.body.attempts).to.deep.equal([]);
      expect((detail.body.body.webhook_endpoint as { id: string }).id).to.equal(body.endpoint.id);
    });
  });

  describe('endpoints within limits', () => {
    it('400: a test of one that is disabled, to which nothing is sent', async () => {
      const { body } = await create();
      await api.request('PUT', at(body.endpoint.id), { body: { endpoint_status: 'disabled' } });
      const refused = await api.request('POST', `${at(body.endpoint.id)}/test`);
      expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
    });

    it('202: a test that is asked for again is for its endpoint alone', async () => {
      await create();
      const { body } = await create();
      const { body: delivery } = await api.request('POST', `${at(body.endpoint.id)}/test`);
      const again = await api.request('POST', `/webhooks/${delivery.system_event_id}/retry`);
      expect([again.status, again.body.message]).to.deep.equal([202, 'told again to 1 endpoint']);
    });

    it('50 are 50 also when more come at one time', async () => {
      const { key } = await api.otherTenant();
      const made = await Promise.all(Array.from({ length: 60 }, () => create({}, key)));
      expect(made.filter(({ status }) => status === 201)).to.have.length(50);
    });

    it('400: more than 50 in an environment; a deleted one makes room', async () => {
      const { key } = await api.otherTenant();
      const made = await Promise.all(Array.from({ length: 49 }, () => create({}, key)));
      const last = await create({}, key);
      expect([...made, last].map(({ status }) => status)).to.deep.equal(Array(50).fill(201));
      const refused = await create({}, key);
      expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_operation']);
      await api.request('DELETE', at(last.body.endpoint.id), { key });
      expect((await create({}, key)).status).to.equal(201);
    });
  });

  describe('system events', () => {
    it('are listed and found by name, kind and record', async () => {
      const one = (await api.request('POST', '/customers', { body: { external_id: 'one' } })).body;
      await api.request('PUT', `/customers/${one.id}`, { body: { name: 'One' } });
      await api.request('POST', '/customers', { body: { external_id: 'two' } });
      const search = async (body: Record<string, unknown>) =>
        (await api.request('POST', '/webhooks/events/search', { body: { order: 'asc', sort: 'id', ...body } })).body;
      const ofOne = await search({ entity_ids: [one.id] });
      expect(ofOne.items.map(({ event_name }: { event_name: string }) => event_name)).to.deep.equal([
        'customer.created',
        'customer.updated',
      ]);
      expect((await search({ event_names: ['CUSTOMER.CREATED'] })).pagination.total).to.equal(2);
      expect((await search({ entity_type: 'customer', event_names: ['feature.created'] })).pagination.total).to.equal(
        0,
      );
      const [first] = ofOne.items;
      expect((await api.request('GET', `/webhooks/events/${first!.id}`)).body).to.deep.equal(first);
    });

    it('a change that is refused tells nothing', async () => {
      const total = async () => (await api.request('GET', '/webhooks/events')).body.pagination.total;
      const before = await total();
      expect((await api.request('POST', '/customers', { body: { external_id: 'one' } })).status).to.equal(409);
      expect((await api.request('DELETE', '/customers/cust_none')).status).to.equal(404);
      expect(await total()).to.equal(before);
    });

    it('have a catalogue', async () => {
      const { items } = (await api.request('GET', '/webhooks/event-types')).body;
      expect(items.map(({ event_name }: { event_name: string }) => event_name)).to.deep.equal(SYSTEM_EVENT_NAMES);
    });

    it('400: a retry that nobody wants, 404: of an event that is not there', async () => {
      const { items } = (await api.request('GET', '/webhooks/events?event_names=customer.created&limit=1')).body;
      await api.services.postgres('system_events').update({ dispatched_at: '2026-03-15T12:00:00Z' });
      await api.services.postgres('webhook_endpoints').update({ endpoint_status: 'disabled' });
      const nobody = await api.request('POST', `/webhooks/${items[0]!.id}/retry`);
      expect([nobody.status, nobody.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect((await api.request('POST', '/webhooks/sys_event_none/retry')).status).to.equal(404);
    });

    it('tell where endpoints are looked after', async () => {
      const { body } = await api.request('GET', '/webhooks/dashboard');
      expect(body).to.deep.equal({ svix_enabled: false, url: null, token: null, app_id: null });
    });
  });

  describe('who may', () => {
    it('401 without a key, 403 for a reader who writes, 404 for another tenant', async () => {
      const { body } = await create();
      const { id } = body.endpoint;
      const [event] = (await api.request('GET', '/webhooks/events?limit=1')).body.items;
      const delivery = (await api.request('POST', `${at(id)}/test`)).body;
      const reader = await api.keyWithRoles(['all_reader']);
      const other = (await api.otherTenant()).key;
      const writes: [string, string, object?][] = [
        ['POST', '/webhooks/endpoints', { url: URL_ }],
        ['PUT', at(id), {}],
        ['POST', `${at(id)}/secret/rotate`, {}],
        ['POST', `${at(id)}/test`],
        ['DELETE', at(id)],
        ['POST', `/webhooks/${event!.id}/retry`],
      ];
      const reads: [string, string, object?][] = [
        ['GET', at(id)],
        ['GET', `/webhooks/events/${event!.id}`],
        ['GET', `/webhooks/deliveries/${delivery.id}`],
      ];
      const statuses = async (asked: typeof writes, key: string | null) =>
        Promise.all(
          asked.map(async ([method, path, sent]) => {
            return (await api.request(method, path, { key, ...(sent ? { body: sent } : {}) })).status;
          }),
        );
      expect(await statuses([...writes, ...reads], null)).to.deep.equal(Array(9).fill(401));
      expect(await statuses(writes, reader)).to.deep.equal(Array(6).fill(403));
      expect(await statuses(reads, reader)).to.deep.equal(Array(3).fill(200));
      expect(await statuses([...writes.slice(1, 6), ...reads], other)).to.deep.equal(Array(8).fill(404));
      for (const list of ['endpoints', 'events', 'deliveries'] as const)
        expect((await api.request('GET', `/webhooks/${list}`, { key: other })).body.pagination.total).to.equal(0);
    });
  });
});
