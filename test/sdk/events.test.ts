/** The published client, unmodified, drives its operations of events. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startWorld, usage, type World } from '../support/world.ts';

describe('the published client: events', () => {
  let world: World;
  let sdk: Flexprice;
  let meterId: string;

  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    sdk = new Flexprice({ serverURL: `${world.api.url}/v1`, apiKeyAuth: world.api.key });
    await world.meter('tokens', { type: 'SUM', field: 'n' });
    meterId = world.id('meter tokens');
    await sdk.features.createFeature({ name: 'Tokens', type: 'metered', meterId });
    await world.plan('Pro', [usage('tokens', '0.5')]);
    await world.subscribe('acme', 'Pro');
  });
  after(() => world.stop());

  it('ingests one event and many', async () => {
    const event = { eventName: 'tokens', externalCustomerId: 'acme', timestamp: '2026-03-15T13:00:00Z' };
    const one = await sdk.events.ingestEvent({ ...event, eventId: 'one', source: 'sdk', properties: { n: '1.5' } });
    expect(one['event_id']).to.equal('one');
    const many = [1, 2].map((n) => ({ ...event, eventId: `many${n}`, properties: { n: String(n) } }));
    expect(await sdk.events.ingestEventsBulk({ events: many })).to.have.property('message');
    await world.waitForPipeline();
    world.at('2026-03-15T14:00:00Z');
  });

  it('lists events', async () => {
    const found = await sdk.events.listRawEvents({ externalCustomerId: 'acme', pageSize: 2, order: 'asc' });
    expect(found).to.include({ hasMore: true, offset: 0 });
    expect(found.events?.map(({ id }) => id)).to.deep.equal(['many1', 'many2']);
    const next = await sdk.events.listRawEvents({ pageSize: 2, order: 'asc', iterLastKey: found.iterLastKey! });
    expect(next.events?.[0]).to.deep.include({ id: 'one', source: 'sdk', properties: { n: '1.5' } });
    const filtered = await sdk.events.listRawEvents({ propertyFilters: { n: ['2'] } });
    expect(filtered.events?.map(({ id }) => id)).to.deep.equal(['many2']);
  });

  it('looks into an event', async () => {
    const { event, status, processedEvents, debugTracker } = await sdk.events.getEvent('one');
    expect([event?.id, status]).to.deep.equal(['one', 'processed']);
    expect(processedEvents?.[0]).to.include({ meterId, qtyTotal: '1.5' });
    expect(debugTracker?.failurePoint ?? null).to.equal(null);
    expect(debugTracker?.customerLookup?.status).to.equal('found');
    expect(debugTracker?.priceLookup?.matchedPrices).to.have.length(1);
    expect(debugTracker?.subscriptionLineItemLookup?.matchedLineItems).to.have.length(1);
  });

  it('looks into an event that failed, and into one that there is not', async () => {
    await sdk.events.ingestEvent({
      eventName: 'tokens',
      externalCustomerId: 'nobody',
      eventId: 'lost',
      properties: { n: 'x' },
    });
    await world.waitForPipeline();
    const { status, debugTracker } = await sdk.events.getEvent('lost');
    expect(status).to.equal('failed');
    expect(debugTracker?.failurePoint?.failurePointType).to.equal('customer_lookup');
    const refused = await sdk.events.getEvent('never').then(
      () => null,
      (error: { statusCode: number }) => error.statusCode,
    );
    expect(refused).to.equal(404);
  });

  it('asks for usage', async () => {
    const totals = await sdk.events.getUsageStatistics({
      eventName: 'tokens',
      aggregationType: 'SUM',
      propertyName: 'n',
      externalCustomerId: 'acme',
      windowSize: 'HOUR',
    });
    expect(totals).to.include({ value: 4.5, type: 'SUM', eventName: 'tokens' });
    expect(totals.results).to.deep.equal([{ windowSize: '2026-03-15T13:00:00Z', value: 4.5 }]);
    const byMeter = await sdk.events.getUsageByMeter({
      meterId,
      startTime: '2026-03-15T00:00:00Z',
      endTime: '2026-03-16T00:00:00Z',
    });
    expect(byMeter.value).to.equal(4.5);
  });

  it('asks for analytics', async () => {
    const expand = ['price', 'meter', 'feature', 'subscription_line_item', 'plan', 'addon'];
    const answer = await sdk.events.getUsageAnalytics({
      externalCustomerId: 'acme',
      windowSize: 'HOUR',
      groupBy: ['source'],
      expand,
    });
    expect(answer).to.include({ totalCost: '2.25', currency: 'usd' });
    expect(answer.items?.map(({ source, totalUsage }) => [source, totalUsage])).to.have.deep.members([
      ['sdk', '1.5'],
      ['', '3'],
    ]);
    const item = answer.items?.find(({ source }) => source === 'sdk');
    expect([item?.meter?.id, item?.feature?.name, item?.plan?.name]).to.deep.equal([meterId, 'Tokens', 'Pro']);
    expect(item?.points?.[0]).to.include({ timestamp: '2026-03-15T13:00:00Z', eventCount: 1 });
  });
});
