/** A key that sends events reads none (docs/permissions.md): every route that tells something of events needs a reading role. */
import { expect } from 'chai';
import { routes } from '../../../api/resources.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const WRITES = new Set(['ingestEvent', 'ingestEventsBulk', 'ingestRawEventsBulk', 'ingestOtlpMetrics']);

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

  it('amounts are for who may read invoices: an event_reader is told usage, and an export with amounts is refused', async () => {
    const make = async <Path extends string>(path: Path, body: object) =>
      (await api.request('POST', path, { body })).body.id;
    const meter_id = await make('/meters', { name: 'C', event_name: 'c', aggregation: { type: 'COUNT' } });
    const plan_id = await make('/plans', { name: 'P' });
    const seller = { entity_type: 'PLAN', entity_id: plan_id, meter_id, type: 'USAGE', invoice_cadence: 'ARREAR' };
    const monthly = { currency: 'usd', billing_period: 'MONTHLY' };
    await make('/prices', { ...seller, ...monthly, billing_model: 'FLAT_FEE', amount: '2' });
    await make('/customers', { external_id: 'costly' });
    await make('/subscriptions', {
      external_customer_id: 'costly',
      plan_id,
      ...monthly,
      start_date: '2026-03-01T00:00:00Z',
    });
    const body = { external_customer_id: 'costly', window_size: 'DAY' };
    for (const path of ['/events/analytics', '/meter-usage/detailed-analytics'] as const) {
      const shown = async (roles: string[]) =>
        (await api.request('POST', path, { body, key: await api.keyWithRoles(roles) })).body;
      const whole = await shown(['all_reader']);
      expect(whole).to.deep.include({ total_cost: '0', currency: 'usd' });
      expect(whole.items[0]).to.include({ total_usage: '0', total_cost: '0' });
      const usage = await shown(['event_reader']);
      expect(usage).to.deep.include({ subtotal: null, total_discount: null, total_cost: null, totals: [] });
      expect(usage.items[0]).to.include({ total_usage: '0', subtotal: null, total_discount: null, total_cost: null });
    }
    const key = await api.keyWithRoles(['event_reader']);
    const range = 'start_time=2026-01-01T00:00:00Z&end_time=2026-02-01T00:00:00Z';
    expect((await api.request('GET', `/events/usage/export?amounts=true&${range}`, { key })).status).to.equal(403);
  });

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
