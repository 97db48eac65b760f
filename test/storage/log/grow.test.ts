/** Partitions may be added: an id that comes again after the change still counts once, and meters count on. */
import { expect } from 'chai';
import { pino } from 'pino';
import { appendEvents } from '../../../actions/metering/events/append-events.ts';
import { elementSpans } from '../../../core/metering/event-text.ts';
import { startPipeline } from '../../../pipeline/pipeline.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { openEmbeddedLog } from '../../../storage/log/embedded/embedded.ts';
import { growLog } from '../../../storage/log/grow.ts';
import { announceMeterVersion } from '../../../storage/progress/meter-versions.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { startMetering } from '../../support/metering.ts';
import { isLogProcessed, isSettled } from '../../support/settled.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { growthContract } from './growth-contract.ts';

const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const METER = {
  id: 'meter_a',
  event_name: 'call',
  filters: [],
  aggregation: { type: 'COUNT' as const },
  reset_usage: 'BILLING_PERIOD' as const,
};

describe('growing the log, whichever it is', () => growthContract((partitions) => startMetering({ partitions })));

describe('growing the log', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  const open = async (partition_count: number): Promise<Stores> => ({
    postgres: database.postgres,
    clickhouse: database.clickhouse,
    log: await openEmbeddedLog(database.postgres, {
      partition_count,
      append_timeout_ms: 5000,
      linger_ms: 10,
      sole_owner: true,
    }),
  });
  const send = async (stores: Stores, ids: string[]) => {
    const events = ids.map((event_id) => ({
      event_id,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-03-10T10:20:00Z',
    }));
    const body = Buffer.from(JSON.stringify(events));
    const spans = elementSpans(body.toString('latin1'));
    const incoming = events.map((event, index) => ({ span: spans[index]!, event_id: event.event_id }));
    await appendEvents(stores.log, SCOPE, { body, events: incoming, contiguous: true, now: new Date() });
  };
  const run = async (stores: Stores, ids: string[]) => {
    const options = { owner: 'test', slice_events_max: 500, logger: pino({ level: 'warn' }), clock: () => new Date() };
    const pipeline = await startPipeline(stores, options);
    await send(stores, ids);
    await until('all is settled', () => isSettled(stores.postgres, () => isLogProcessed(stores.log)));
    await pipeline.stop();
  };
  const counted = async (stores: Stores) => {
    const report = await readUsageReport(stores, SCOPE, {
      meter: METER,
      external_customer_ids: ['acme'],
      start_us: Date.UTC(2026, 2, 1) * 1000,
      end_us: Date.UTC(2026, 3, 1) * 1000,
    });
    return { value: report.usage[0]!.total.value.toString(), from: report.source };
  };
  const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `id-${from + index}`);

  it('counts what comes again once, and what is new', async () => {
    const before = await open(2);
    await before.postgres.transaction((trx) =>
      announceMeterVersion(trx, SCOPE, { meter_id: METER.id, version: 1, definition: METER }),
    );
    await run(before, ids(0, 1000));
    expect(await counted(before)).to.deep.equal({ value: '1000', from: 'buckets' });

    await send(before, ids(1000, 1001));
    const refusal = await growLog(before, 5).catch((error: Error) => error.message);
    expect(refusal).to.match(/not drained/);
    await run(before, []);
    await growLog(before, 5);
    await before.log.close();

    const after = await open(5);
    expect(after.log.partition_count).to.equal(5);
    await run(after, ids(500, 1500));
    expect(await counted(after)).to.deep.equal({ value: '1500', from: 'buckets' });
    const used = await after.clickhouse.query({
      query: 'select uniqExact(partition) as n from events',
      format: 'JSONEachRow',
    });
    expect(await used.json()).to.deep.equal([{ n: '5' }]);
    await after.log.close();
  });
});
