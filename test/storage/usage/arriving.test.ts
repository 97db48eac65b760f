/** Questions while events arrive: every answer is that of a prefix of the log, and none is older than the one before. */
import { expect } from 'chai';
import { pino } from 'pino';
import { appendEvents } from '../../../actions/append-events.ts';
import { elementSpans } from '../../../core/metering/event-text.ts';
import { type RunningPipeline, startPipeline } from '../../../pipeline/pipeline.ts';
import { openEmbeddedLog } from '../../../storage/log/embedded.ts';
import { announceMeterVersion } from '../../../storage/meter-versions.ts';
import type { Stores } from '../../../storage/stores.ts';
import { askUsage } from '../../../storage/usage/usage.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const US = (text: string) => Date.parse(text) * 1000;
const BATCHES = 16;
const PER_BATCH = 50;

describe('usage while events arrive', () => {
  let database: FreshDatabase;
  let stores: Stores;
  let pipeline: RunningPipeline;

  before(async () => {
    database = await freshDatabase();
    // One partition: the order in which events take effect is that in which they were sent.
    const log = await openEmbeddedLog(database.postgres, { partition_count: 1, append_timeout_ms: 5000, linger_ms: 1 });
    stores = { postgres: database.postgres, clickhouse: database.clickhouse, log };
    const logger = pino({ level: 'warn' });
    pipeline = await startPipeline(stores, { owner: 'test', slice_events_max: 100, logger, clock: () => new Date() });
    const aggregation = { type: 'SUM' as const, field: 'n' };
    const definition = { id: 'm', event_name: 'call', filters: [], aggregation, reset_usage: 'NEVER' as const };
    await stores.postgres.transaction((trx) =>
      announceMeterVersion(trx, SCOPE, { meter_id: 'm', version: 1, definition }),
    );
  });
  after(async () => {
    await pipeline.stop();
    await stores.log.close();
    await database.close();
  });

  /** Event i weighs i and stands in a whole hour, a day or a ragged end in turn. */
  const send = async (batch: number) => {
    const times = ['2026-03-10T10:20:00Z', '2026-03-12T05:00:00Z', '2026-03-14T23:10:00Z', '2026-03-11T00:00:00Z'];
    const events = Array.from({ length: PER_BATCH }, (_, index) => {
      const i = batch * PER_BATCH + index + 1;
      const timestamp = times[i % times.length];
      return { event_id: `e${i}`, event_name: 'call', external_customer_id: 'acme', timestamp, properties: { n: i } };
    });
    const body = Buffer.from(JSON.stringify(events));
    const spans = elementSpans(body.toString('latin1'));
    const incoming = events.map(({ event_id }, index) => ({ span: spans[index]!, event_id }));
    await appendEvents(stores.log, SCOPE, { body, events: incoming, contiguous: true, now: new Date() });
  };

  it('counts the first events and no others, more of them each time, and all in the end', async () => {
    const range = { start_us: US('2026-03-10T10:15:00Z'), end_us: US('2026-03-14T23:30:00Z') };
    let sending = true;
    const sent = (async () => {
      for (let batch = 0; batch < BATCHES; batch++) await send(batch);
      sending = false;
    })();
    const counts: number[] = [];
    const total = BATCHES * PER_BATCH;
    while (sending || counts.at(-1) !== total) {
      const report = await askUsage(stores, SCOPE, { meter: { id: 'm' }, external_customer_ids: ['acme'], ...range });
      const { value, event_count: n } = report.usage[0]!.total;
      expect(value.toFixed(), `the sum of the first ${n}`).to.equal(String((n * (n + 1)) / 2));
      expect(n).to.be.at.least(counts.at(-1) ?? 0);
      counts.push(n);
    }
    await sent;
    expect(new Set(counts).size, 'several answers on the way').to.be.greaterThan(3);
  });
});
