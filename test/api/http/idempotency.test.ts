import { expect } from 'chai';
import { z } from 'zod';
import { route } from '../../../api/http/route.ts';
import { routes as ownRoutes } from '../../../api/resources.ts';
import { claimKey, purgeAnswers } from '../../../storage/models/foundation/idempotency-key.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

/** A route that counts its calls, and waits or fails when it is told to. */
function countingRoute() {
  const state = { calls: 0, fail: false, gate: Promise.resolve(), entered: () => {} };
  const post = (raw_body: boolean) =>
    route({
      method: 'post',
      path: raw_body ? '/probe/raw/:id' : '/probe/:id',
      operation_id: raw_body ? 'countRaw' : 'count',
      summary: 'for this test',
      tag: 'Test',
      access: 'meter:read',
      raw_body,
      params: z.object({ id: z.string() }),
      body: z.looseObject({}).optional(),
      success: 202,
      handle: async () => {
        state.calls += 1;
        state.entered();
        await state.gate;
        if (state.fail) throw new Error('broken');
        return { call: state.calls };
      },
    });
  return { state, routes: [post(false), post(true)] };
}

describe('Idempotency-Key', () => {
  let api: TestApi;
  const { state, routes } = countingRoute();
  let lastKey = 0;
  const freshKey = () => `key-${++lastKey}`;
  const post = (key: string, path = '/probe/a', body: unknown = { a: 1 }, apiKey?: string) =>
    api.request('POST', path, { body, headers: { 'idempotency-key': key }, ...(apiKey ? { key: apiKey } : {}) });

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', routes: [...ownRoutes, ...routes] });
  });
  after(() => api.stop());

  it('gives the first answer again, status and body', async () => {
    for (const path of ['/probe/a', '/probe/raw/a']) {
      const key = freshKey();
      const first = await post(key, path);
      const second = await post(key, path);
      expect(first.status).to.equal(202);
      expect(first.headers.get('idempotency-replayed')).to.equal(null);
      expect([second.status, second.text]).to.deep.equal([first.status, first.text]);
      expect(second.headers.get('idempotency-replayed')).to.equal('true');
      expect(second.headers.get('content-type')).to.equal(first.headers.get('content-type'));
    }
  });

  it('makes one record, not two', async () => {
    const body = { name: 'Once', event_name: 'once', aggregation: { type: 'COUNT' } };
    const key = freshKey();
    const [first, second] = [await post(key, '/meters', body), await post(key, '/meters', body)];
    expect(second.body.id).to.equal(first.body.id);
    expect((await api.request('GET', '/meters?event_name=once')).body.pagination.total).to.equal(1);
  });

  it('is not used up by a refusal: the request that was mended takes it', async () => {
    const key = freshKey();
    const mended = { name: 'Mended', event_name: 'mended', aggregation: { type: 'COUNT' } };
    expect((await post(key, '/meters', { ...mended, name: 7 })).status).to.equal(400);
    const second = await post(key, '/meters', mended);
    expect([second.status, second.headers.get('idempotency-replayed')]).to.deep.equal([201, null]);
    expect((await post(key, '/meters', mended)).text).to.equal(second.text);
  });

  it('of two at once only one is handled, and the other hears 409', async () => {
    const key = freshKey();
    const before = state.calls;
    let open = () => {};
    state.gate = new Promise((resolve) => {
      open = resolve;
    });
    const entered = new Promise<void>((resolve) => {
      state.entered = resolve;
    });
    const first = post(key);
    await entered;
    const second = await post(key);
    expect(second.status).to.equal(409);
    expect(second.body.code).to.equal('version_conflict');
    expect(second.headers.get('retry-after')).to.equal('1');
    open();
    expect((await first).status).to.equal(202);
    expect((await post(key)).text).to.equal((await first).text);
    expect(state.calls).to.equal(before + 1);
  });

  it('of twenty at once one record is made', async () => {
    const body = { name: 'Race', event_name: 'race', aggregation: { type: 'COUNT' } };
    const key = freshKey();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(key, '/meters', body)));
    const statuses = new Set(answers.map((answer) => answer.status));
    expect([...statuses].every((status) => status === 201 || status === 409)).to.equal(true);
    expect(statuses.has(201)).to.equal(true);
    expect((await api.request('GET', '/meters?event_name=race')).body.pagination.total).to.equal(1);
  });

  it('422 for another request with the same key', async () => {
    const key = freshKey();
    await post(key, '/probe/a', { a: 1 });
    for (const [path, body] of [
      ['/probe/a', { a: 2 }],
      ['/probe/a?x=1', { a: 1 }],
    ] as const) {
      const answer = await post(key, path, body);
      expect(answer.status).to.equal(422);
      expect(answer.body).to.deep.include({ code: 'validation_error', http_status_code: 422 });
    }
  });

  it('is a key of its path, its principal and its tenant only', async () => {
    const key = freshKey();
    const keys = [await api.keyWithRoles(['super_admin']), (await api.otherTenant()).key];
    const before = state.calls;
    await post(key, '/probe/a');
    await post(key, '/probe/b');
    for (const apiKey of keys) await post(key, '/probe/a', { a: 1 }, apiKey);
    expect(state.calls).to.equal(before + 4);
  });

  it('does not keep an answer of 5xx', async () => {
    const key = freshKey();
    state.fail = true;
    expect((await post(key)).status).to.equal(500);
    state.fail = false;
    const again = await post(key);
    expect([again.status, again.headers.get('idempotency-replayed')]).to.deep.equal([202, null]);
  });

  it('is forgotten after 48 hours', async () => {
    const key = freshKey();
    const { text } = await post(key);
    api.setNow('2026-03-17T11:59:59Z');
    expect((await post(key)).text).to.equal(text);
    api.setNow('2026-03-17T12:00:00Z');
    const other = await post(key, '/probe/a', { a: 'another' });
    expect([other.status, other.headers.get('idempotency-replayed')]).to.deep.equal([202, null]);
    expect(await purgeAnswers(api.services.postgres, new Date('2026-03-19T11:59:59Z'))).to.be.greaterThan(0);
    expect((await post(key, '/probe/a', { a: 'another' })).text).to.equal(other.text);
  });

  it('a request whose process died is taken over when its lease has ended, by the same request only', async () => {
    const { postgres } = api.services;
    const claim = {
      ...api.scope,
      id: 'claim',
      request_hash: 'h1',
      holder: 'dead',
      now: new Date('2026-03-17T12:00:00Z'),
    };
    const again = { ...claim, holder: 'alive' };
    expect(await claimKey(postgres, claim)).to.deep.equal({ kind: 'ours' });
    expect(await claimKey(postgres, again)).to.deep.equal({ kind: 'in_flight' });
    await postgres('idempotency_keys')
      .where('id', 'claim')
      .update({ leased_until: postgres.raw(`now() - interval '1 second'`) });
    expect(await claimKey(postgres, { ...again, request_hash: 'h2' })).to.deep.equal({ kind: 'another_request' });
    expect(await claimKey(postgres, again)).to.deep.equal({ kind: 'ours' });
    expect(await claimKey(postgres, { ...again, holder: 'third' })).to.deep.equal({ kind: 'in_flight' });
  });

  it('400 for a key of no character and of more than 255', async () => {
    expect((await post('x'.repeat(255))).status).to.equal(202);
    for (const key of ['', 'x'.repeat(256)]) {
      const answer = await post(key);
      expect(answer.status).to.equal(400);
      expect(answer.body.message).to.match(/^Idempotency-Key: /);
    }
  });

  it('keeps no API key in clear, and still gives a new one again to the one who made it', async () => {
    const key = freshKey();
    const body = { name: 'Made once', type: 'private_key' };
    const first = await post(key, '/secrets/api/keys', body);
    expect(first.status).to.equal(201);
    const kept = await api.services.postgres('idempotency_keys').select('answer');
    for (const row of kept) expect(String(row.answer)).to.not.contain(first.body.api_key);
    expect((await post(key, '/secrets/api/keys', body)).text).to.equal(first.text);
    expect((await post(key, '/secrets/api/keys', body, first.body.api_key as string)).status).to.equal(409);
  });
});
