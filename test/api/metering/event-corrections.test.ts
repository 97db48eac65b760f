import { expect } from 'chai';
import { type RunningPipeline, startPipeline } from '../../../pipeline/pipeline.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { isLogProcessed, isSettled } from '../../support/settled.ts';
import { until } from '../../support/until.ts';

describe('corrections of events', () => {
  let api: TestApi;
  let pipeline: RunningPipeline | null = null;
  let meter: string;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    await startWorking();
    const body = { name: 'calls', event_name: 'call', aggregation: { type: 'SUM', field: 'n' } };
    meter = (await api.request('POST', '/meters', { body })).body.id;
  });
  after(async () => {
    await pipeline?.stop();
    await api.stop();
  });

  const startWorking = async () => {
    const { services } = api;
    pipeline = await startPipeline(services, {
      owner: 't',
      slice_events_max: 100,
      logger: services.logger,
      clock: services.clock,
    });
  };
  const send = async (event_id: string, n: string, fields = {}) => {
    const body = {
      event_id,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-03-10T10:20:00Z',
      properties: { n },
      ...fields,
    };
    expect((await api.request('POST', '/events', { body })).status).to.equal(202);
  };
  const settled = () =>
    until('all is settled', () => isSettled(api.services.postgres, () => isLogProcessed(api.services.log)));
  const usage = async (customer = 'acme') => {
    const body = {
      meter_id: meter,
      external_customer_id: customer,
      start_time: '2026-03-01T00:00:00Z',
      end_time: '2026-04-01T00:00:00Z',
    };
    return (await api.request('POST', '/events/usage/meter', { body })).body.value.toString();
  };
  const found = async (event_id: string) => (await api.request('GET', `/events?event_id=${event_id}`)).body.events;
  const correct = (id: string, verb: string, body: unknown, options = {}) =>
    api.request('POST', `/events/${id}/${verb}`, { body, ...options });

  describe('202', () => {
    it('voids: usage follows, the raw row stays with the record of who, when and why', async () => {
      await send('v1', '5');
      await send('v2', '2');
      await settled();
      expect(await usage()).to.equal('7');
      const { status, body } = await correct('v1', 'void', { reason: 'sent by mistake' });
      expect(status).to.equal(202);
      expect(body).to.deep.include({
        event_id: 'v1',
        action: 'void',
        reason: 'sent by mistake',
        state: 'requested',
        applied_at: null,
      });
      await settled();
      expect(await usage()).to.equal('2');
      expect(await found('v1')).to.deep.equal([]);
      const { body: kept } = await api.request('GET', '/events/v1/corrections');
      expect(kept.items).to.have.length(1);
      expect(kept.items[0]).to.deep.include({ state: 'applied', requested_at: '2026-03-15T12:00:00Z' });
      const raw = await api.services.clickhouse.query({
        query: `select count() as n from events where event_id = 'v1'`,
        format: 'JSONEachRow',
      });
      expect(await raw.json()).to.deep.equal([{ n: '1' }]);
    });

    it('voids once: again is the same correction, and a re-send of the id stays a duplicate', async () => {
      const first = await correct('v2', 'void', { reason: 'one' });
      const second = await correct('v2', 'void', { reason: 'two' });
      expect(second.body.id).to.equal(first.body.id);
      expect(second.body.reason).to.equal('one');
      await settled();
      await send('v2', '2');
      await settled();
      expect(await usage()).to.equal('0');
    });

    it('replaces content, customer, name and time, digit by digit, and again', async () => {
      await send('r1', '1');
      await settled();
      const event = `{"event_name": "call", "external_customer_id": "beta", "properties": {"n": 0.10000000000000000001}}`;
      expect((await correct('r1', 'replace', `{"reason": "wrong customer", "event": ${event}}`)).status).to.equal(202);
      await settled();
      expect(await usage()).to.equal('0');
      expect(await usage('beta')).to.equal('0.10000000000000000001');
      expect((await found('r1'))[0]).to.deep.include({
        external_customer_id: 'beta',
        timestamp: '2026-03-10T10:20:00Z',
      });
      const rows = await api.services.clickhouse.query({
        query: `select toString(sum(sum)) as s from usage_buckets where size = 'HOUR' and external_customer_id = 'beta'`,
        format: 'JSONEachRow',
      });
      expect(await rows.json()).to.deep.equal([{ s: '0.10000000000000000001' }]);
      const again = {
        event_name: 'call',
        external_customer_id: 'acme',
        timestamp: '2026-03-31T23:59:59.999Z',
        properties: { n: '3' },
      };
      await correct('r1', 'replace', { reason: 'and back', event: again });
      await settled();
      expect([await usage(), await usage('beta')]).to.deep.equal(['3', '0']);
      await correct('r1', 'void', { reason: 'not at all' });
      await settled();
      expect(await usage()).to.equal('0');
    });

    it('is applied in its turn to an event that is still in the log', async () => {
      await pipeline!.stop();
      await send('late', '9');
      expect((await correct('late', 'void', { reason: 'before it was counted' })).status).to.equal(202);
      await startWorking();
      await settled();
      expect(await usage()).to.equal('0');
    });
  });

  describe('refusals', () => {
    it('404 for an id that never was accepted, and for one of another tenant', async () => {
      await send('mine', '1');
      await settled();
      expect((await correct('never', 'void', { reason: 'x' })).status).to.equal(404);
      const { key } = await api.otherTenant();
      expect((await correct('mine', 'void', { reason: 'x' }, { key })).status).to.equal(404);
      await correct('mine', 'void', { reason: 'x' });
    });

    it('400 for what cannot be an event, for another id, without a reason, and for a replacement of what is void', async () => {
      const event = { event_name: 'call', external_customer_id: 'acme' };
      for (const [body, field] of [
        [{ reason: 'x', event: { ...event, event_name: '' } }, 'event.event_name'],
        [{ reason: 'x', event: { ...event, event_id: 'other' } }, 'event.event_id'],
        [{ event }, 'reason'],
        [{ reason: 'x' }, 'event'],
      ] as const) {
        const { status, body: answer } = await correct('r1', 'replace', body);
        expect(status).to.equal(400);
        expect(answer.message).to.include(`${field}:`);
      }
      const { status, body } = await correct('v1', 'replace', { reason: 'x', event });
      expect([status, body.code]).to.deep.equal([400, 'invalid_operation']);
    });

    it('403 for who may send events and not correct them', async () => {
      const key = await api.keyWithRoles(['event_ingestor']);
      expect((await correct('v1', 'void', { reason: 'x' }, { key })).status).to.equal(403);
      const writer = await api.keyWithRoles(['all_writer']);
      expect((await correct('v1', 'void', { reason: 'x' }, { key: writer })).status).to.equal(202);
    });
  });
});
