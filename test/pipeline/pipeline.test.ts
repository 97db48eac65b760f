/** The road from an accepted event to a number: each event takes effect once. */
import { expect } from 'chai';
import pino from 'pino';
import { appendEvents } from '../../actions/metering/events/append-events.ts';
import { elementSpans } from '../../core/metering/event-text.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import { type RunningPipeline, startPipeline } from '../../pipeline/pipeline.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import { announceMeterVersion } from '../../storage/progress/meter-versions.ts';
import { readUsageReport } from '../../storage/usage/usage.ts';
import { isLogProcessed, isSettled } from '../support/settled.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const US = (text: string) => Date.parse(text) * 1000;

describe('pipeline', () => {
  let database: FreshDatabase;
  let stores: Stores;
  let pipeline: RunningPipeline;

  before(async () => {
    database = await freshDatabase();
    const log = await openEmbeddedLog(database.postgres, {
      partition_count: 3,
      append_timeout_ms: 5000,
      linger_ms: 20,
    });
    stores = { postgres: database.postgres, clickhouse: database.clickhouse, log };
    const logger = pino({ level: 'warn' });
    pipeline = await startPipeline(stores, { owner: 'test', slice_events_max: 500, logger, clock: () => new Date() });
  });
  after(async () => {
    await pipeline.stop();
    await stores.log.close();
    await database.close();
  });

  const send = (events: object[]) => {
    const body = Buffer.from(JSON.stringify(events));
    const spans = elementSpans(body.toString('latin1'));
    const incoming = events.map((event, index) => ({
      span: spans[index]!,
      event_id: (event as { event_id?: string }).event_id,
    }));
    return appendEvents(stores.log, SCOPE, { body, events: incoming, contiguous: true, now: new Date() });
  };
  const event = (id: string, fields: object) => ({
    event_id: id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-10T10:20:00Z',
    ...fields,
  });
  const meter = (id: string, aggregation: MeterDefinition['aggregation']): MeterDefinition => ({
    id,
    event_name: 'call',
    filters: [],
    aggregation,
    reset_usage: 'BILLING_PERIOD',
  });
  const announce = (definition: MeterDefinition) =>
    stores.postgres.transaction((trx) =>
      announceMeterVersion(trx, SCOPE, { meter_id: definition.id, version: 1, definition }),
    );
  const settled = () =>
    until('the pipeline is idle', () => isSettled(stores.postgres, () => isLogProcessed(stores.log)));
  const usage = async (meterId: string, start: string, end: string) => {
    const report = await readUsageReport(stores, SCOPE, {
      meter: { id: meterId },
      external_customer_ids: ['acme'],
      start_us: US(start),
      end_us: US(end),
    });
    return {
      value: report.usage[0]!.total.value.toString(),
      events: report.usage[0]!.total.event_count,
      from: report.source,
    };
  };

  it('counts before and after a meter comes, once, to the digit', async () => {
    await send(
      Array.from({ length: 2000 }, (_, i) => event(`a${i}`, { properties: { tokens: '0.1', host: `h${i % 7}` } })),
    );
    await announce(meter('m_sum', { type: 'SUM', field: 'tokens' }));
    await announce(meter('m_unique', { type: 'COUNT_UNIQUE', field: 'host' }));
    await send(
      Array.from({ length: 2000 }, (_, i) =>
        event(`b${i}`, { timestamp: '2026-03-12T23:59:59.5Z', properties: { tokens: 0.2, host: `h${i % 9}` } }),
      ),
    );
    await settled();
    expect(await usage('m_sum', '2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z')).to.deep.equal({
      value: '600',
      events: 4000,
      from: 'buckets',
    });
    expect(await usage('m_sum', '2026-03-10T10:20:00Z', '2026-03-12T23:59:59.5Z')).to.deep.equal({
      value: '200',
      events: 2000,
      from: 'buckets',
    });
    expect(await usage('m_sum', '2026-03-10T10:20:01Z', '2026-03-12T23:59:59.6Z')).to.deep.equal({
      value: '400',
      events: 2000,
      from: 'buckets',
    });
    expect(await usage('m_unique', '2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z')).to.deep.equal({
      value: '9',
      events: 4000,
      from: 'buckets',
    });
    expect(await usage('m_unique', '2026-03-10T10:19:00Z', '2026-03-12T23:59:59.6Z')).to.deep.equal({
      value: '9',
      events: 4000,
      from: 'buckets',
    });
  });

  it('takes an id once, whatever its timestamp and batch, and keeps other content as a conflict', async () => {
    await send(
      Array.from({ length: 2000 }, (_, i) => event(`a${i}`, { properties: { tokens: '0.1', host: `h${i % 7}` } })),
    );
    await send([
      event('a1', { timestamp: '2026-03-11T00:00:00Z', properties: { tokens: '5' } }),
      event('x', { properties: { tokens: 'abc' } }),
    ]);
    await settled();
    expect(await usage('m_sum', '2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z')).to.deep.equal({
      value: '600',
      events: 4000,
      from: 'buckets',
    });
    const rows = await stores.clickhouse.query({
      query: 'select outcome, count() as n from event_outcomes group by outcome order by outcome',
      format: 'JSONEachRow',
    });
    expect(await rows.json()).to.deep.equal([
      { outcome: 'conflict', n: '1' },
      { outcome: 'duplicate', n: '2000' },
      { outcome: 'unusable', n: '2' },
    ]);
  });
});
