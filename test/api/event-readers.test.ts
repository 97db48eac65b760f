/** A key that sends events reads none (docs/permissions.md): every route that tells something of events needs a reading role. */
import { expect } from 'chai';
import { routes } from '../../api/resources.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

const WRITES = new Set(['ingestEvent', 'ingestEventsBulk', 'ingestRawEventsBulk']);

describe('reading events', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const reading = routes.filter(
    ({ path, operation_id }) => /^\/(events|meter-usage)(\/|$)/.test(path) && !WRITES.has(operation_id),
  );

  it('there are such routes', () => expect(reading.length).to.be.greaterThan(12));

  for (const { method, path, operation_id } of reading) {
    it(`${operation_id}: 403 for an event_ingestor`, async () => {
      const key = await api.keyWithRoles(['event_ingestor']);
      const body = method === 'get' ? {} : { body: {} };
      const answer = await api.request(method.toUpperCase(), path.replace(/:\w+/g, 'x'), { key, ...body });
      expect([answer.status, answer.body.code]).to.deep.equal([403, 'permission_denied']);
    });
  }

  it('200 for an event_reader and for all_reader, and 202 for an event_ingestor that sends', async () => {
    for (const role of ['event_reader', 'all_reader']) {
      const key = await api.keyWithRoles([role]);
      const body = { event_name: 'call', aggregation_type: 'COUNT' };
      expect((await api.request('POST', '/events/usage', { key, body })).status).to.equal(200);
      expect((await api.request('GET', '/events', { key })).status).to.equal(200);
    }
    const key = await api.keyWithRoles(['event_ingestor']);
    const body = { event_name: 'call', external_customer_id: 'acme' };
    expect((await api.request('POST', '/events', { key, body })).status).to.equal(202);
  });
});
