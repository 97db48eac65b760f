/** GET /events/{id} and /events/lookup: what became of an event, and why. */
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

describe('events: the debugger', () => {
  let world: World;
  let featureId: string;
  const get = (id: string) => world.api.request('GET', `/events/${encodeURIComponent(id)}`);
  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T12:00:01Z',
    properties: { n: '2.50', region: 'eu' },
    ...fields,
  });

  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' }, { filters: [{ key: 'region', values: ['eu', 'us'] }] });
    await world.meter('double', { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '2' }, { event_name: 'call' });
    await world.meter('unpriced');
    const feature = { name: 'Calls', type: 'metered', meter_id: world.id('meter call') };
    featureId = (await world.post('/features', feature)).id;
    await world.plan('Pro', [usage('call', '0.1'), usage('double', '0.1')]);
    await world.subscribe('acme', 'Pro');
    await world.post('/customers', { external_id: 'idle' });
    // A meter that is met behind the events counts them from the raw rows, and notes nothing for those that it cannot use.
    await world.waitForPipeline();
    await world.send([
      event('good'),
      event('refused', { properties: { n: 1, region: 'asia' } }),
      event('unusable', { properties: { n: 'many', region: 'eu' } }),
      event('stranger', { external_customer_id: 'nobody' }),
      event('idle', { external_customer_id: 'idle' }),
      event('early', { timestamp: '2026-03-15T11:59:59Z' }),
      event('unmetered', { event_name: 'other' }),
      event('unpriced', { event_name: 'unpriced' }),
      event('with / and ?'),
    ]);
    await world.waitForPipeline();
    await world.send([event('good'), event('good', { properties: { n: '3' } })]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  describe('200', () => {
    it('a processed event, with what it comes to on each line item', async () => {
      const { status, body, text } = await get('good');
      expect(status, text).to.equal(200);
      expect(body).to.include({ status: 'processed', state: 'charged' });
      expect(body.event).to.deep.include({ id: 'good', event_name: 'call', properties: { n: '2.50', region: 'eu' } });
      const shown = body.processed_events.map((fed: Record<string, string>) => [
        fed.meter_id,
        fed.qty_total,
        fed.feature_id,
      ]);
      expect(shown).to.have.deep.members([
        [world.id('meter call'), '2.5', featureId],
        [world.id('meter double'), '5', ''],
      ]);
      const { debug_tracker } = body;
      expect(debug_tracker!.failure_point).to.equal(null);
      expect(debug_tracker!.customer_lookup).to.deep.include({ status: 'found', error: null });
      expect(debug_tracker!.customer_lookup.customer!.external_id).to.equal('acme');
      expect(debug_tracker!.meter_matching.matched_meters).to.have.length(2);
      expect(debug_tracker!.price_lookup.matched_prices).to.have.length(2);
      const [line] = debug_tracker!.subscription_line_item_lookup.matched_line_items;
      expect(line).to.include({ is_active_for_event: true, timestamp_within_range: true, end_date: null });
    });

    it('what else was sent with the id', async () => {
      const { outcomes } = (await get('good')).body;
      expect(outcomes.map(({ outcome }: { outcome: string }) => outcome)).to.deep.equal(['duplicate', 'conflict']);
      expect(outcomes[0]!.body).to.equal(null);
      expect(JSON.parse(outcomes[1]!.body!).properties).to.deep.equal({ n: '3' });
    });

    it('an id that does not fit into a path', async () => {
      const byPath = await get('with / and ?');
      const byQuery = await world.api.request('GET', '/events/lookup?id=with+%2F+and+%3F');
      expect(byQuery.body).to.deep.equal(byPath.body);
      expect(byQuery.body.event!.id).to.equal('with / and ?');
    });

    it('which filter refused it', async () => {
      const { body } = await get('refused');
      expect(body.debug_tracker!.meter_matching.refused_meters).to.deep.equal([
        { meter_id: world.id('meter call'), key: 'region', accepted: ['eu', 'us'], why: 'not an accepted value' },
      ]);
      expect(body.status).to.equal('processed');
    });

    it('why its value cannot be counted', async () => {
      const { body } = await get('unusable');
      expect(body).to.include({ status: 'failed', state: 'unusable' });
      expect(body.debug_tracker!.failure_point!.failure_point_type).to.equal('meter_lookup');
      const reason = 'property "n" is not a number';
      expect(
        body.debug_tracker!.meter_matching.unusable_meters.map((one: { reason: string }) => one.reason),
      ).to.deep.equal([reason, reason]);
      expect(body.outcomes.map((one: { reason: string }) => one.reason)).to.deep.equal([reason, reason]);
    });

    const FAILURES: [id: string, state: string, failure: string, statuses: string][] = [
      ['stranger', 'counted', 'customer_lookup', 'not_found found found unprocessed'],
      ['unmetered', 'unmatched', 'meter_lookup', 'found not_found unprocessed unprocessed'],
      ['unpriced', 'counted', 'price_lookup', 'found found not_found unprocessed'],
      ['idle', 'counted', 'subscription_line_item_lookup', 'found found found not_found'],
      ['early', 'counted', 'subscription_line_item_lookup', 'found found found not_found'],
    ];
    for (const [id, state, failure, statuses] of FAILURES) {
      it(`${id}: ${state}, not charged because of ${failure}`, async () => {
        const { body, text } = await get(id);
        expect(body, text).to.include({ status: state === 'counted' ? 'processed' : 'failed', state });
        const { failure_point, ...steps } = body.debug_tracker!;
        expect(failure_point!.failure_point_type).to.equal(failure);
        expect(failure_point!.error).to.include({ success: false, code: 'not_found' });
        const { customer_lookup, meter_matching, price_lookup, subscription_line_item_lookup } = steps;
        const all = [customer_lookup, meter_matching, price_lookup, subscription_line_item_lookup];
        expect(all.map(({ status }) => status).join(' ')).to.equal(statuses);
      });
    }

    it('early: the line item that it came too early for', async () => {
      const [line] = (await get('early')).body.debug_tracker!.subscription_line_item_lookup.matched_line_items;
      expect(line).to.include({ is_active_for_event: false, timestamp_within_range: false });
    });

    it('a dead letter, with the reason and its bytes', async () => {
      const { log } = world.api.services;
      const body = Buffer.from(
        '[{"event_id":"dead","event_name":"call","external_customer_id":"acme","timestamp":"noon"}]',
      );
      const entries = Array.from({ length: log.partition_count }, (_, partition) => ({
        ...world.api.scope,
        partition,
        kind: 'events' as const,
        received_at_us: world.now.getTime() * 1000,
        generated_ids: null,
        event_count: 1,
        body,
      }));
      await log.append(entries.slice(0, 1));
      await world.waitForPipeline();
      const answer = (await get('dead')).body;
      expect(answer).to.include({ status: 'failed', state: 'rejected', event: null, debug_tracker: null });
      expect(answer.outcomes).to.have.length(1);
      expect(answer.outcomes[0]).to.include({ outcome: 'dead_letter', reason: 'timestamp: is malformed' });
      expect(JSON.parse(answer.outcomes[0]!.body!).event_id).to.equal('dead');
    });
  });

  describe('404', () => {
    it('for an id that nobody sent', async () => {
      const answer = await get('never');
      expect([answer.status, answer.body.code]).to.deep.equal([404, 'not_found']);
    });
    it('for the event of another tenant', async () => {
      const { key } = await world.api.otherTenant();
      expect((await world.api.request('GET', '/events/good', { key })).status).to.equal(404);
    });
  });

  it('400 for a lookup without an id', async () => {
    expect((await world.api.request('GET', '/events/lookup')).status).to.equal(400);
  });

  // The last of them: nothing is sold any more.
  describe('when its plan is archived', () => {
    it('an event that was charged before still says by which prices', async () => {
      world.at('2026-03-16T12:00:00Z');
      await world.cancel('acme');
      const { processed_events } = (await get('good')).body;
      expect((await world.api.request('DELETE', `/plans/${world.id('plan Pro')}`)).status).to.equal(200);
      const { body } = await get('good');
      expect(body.processed_events).to.have.length(2).and.to.deep.equal(processed_events);
      const prices = body.debug_tracker!.price_lookup.matched_prices;
      expect(prices.map(({ status }: { status: string }) => status)).to.deep.equal(['archived', 'archived']);
    });
  });
});

describe('events: the debugger before the pipeline', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('an event that is only in the log is processing, with a given id and a made one', async () => {
    const fields = { event_name: 'call', external_customer_id: 'acme', properties: { n: 1.1 } };
    const odd = { event_id: 'né/"1"', ...fields, timestamp: '2026-03-01T00:00:00Z' };
    expect((await api.request('POST', '/events/bulk', { body: { events: [fields, odd, fields] } })).status).to.equal(
      202,
    );
    const made = (await api.request('POST', '/events', { body: fields })).body.event_id;
    const byMadeId = await api.request('GET', `/events/${made}`);
    expect(byMadeId.status, byMadeId.text).to.equal(200);
    expect(byMadeId.body).to.include({ status: 'processing' });
    expect(byMadeId.body.event).to.include({ id: made, timestamp: '2026-03-15T12:00:00Z' });
    const byId = await api.request('GET', `/events/lookup?id=${encodeURIComponent(odd.event_id)}`);
    expect(byId.body.event, byId.text).to.include({ id: odd.event_id, timestamp: '2026-03-01T00:00:00Z' });
    expect(byId.body.processed_events).to.deep.equal([]);
    const monitoring = await api.request('GET', '/events/monitoring');
    expect(monitoring.body).to.include({ total_count: 0, consumption_lag: 4, post_processing_lag: 0 });
  });

  it('a meter that waits to be counted is post-processing', async () => {
    const body = { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' }, reset_usage: 'BILLING_PERIOD' };
    expect((await api.request('POST', '/meters', { body })).status).to.equal(201);
    const { post_processing_lag } = (await api.request('GET', '/events/monitoring')).body;
    expect(post_processing_lag).to.equal(1);
  });
});
