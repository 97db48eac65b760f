import { expect } from 'chai';
import type { EventOutcome } from '../../../core/metering/event/outcome.ts';
import { findMissingBucketRows, listStoredMonths, writeBucketRows } from '../../../storage/events/bucket-rows.ts';
import { writeRows } from '../../../storage/events/rows.ts';
import { EVENT_OUTCOMES } from '../../../storage/events/tables.ts';
import { buildFenceCondition, buildStatementMark, raiseFence } from '../../../storage/events/write-fence.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

describe('the fence of a writer', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  const outcome = (position: number): EventOutcome => ({
    tenant_id: 't',
    environment_id: 'e',
    event_id: `id-${position}`,
    outcome: 'duplicate',
    meter_id: '',
    reason: '',
    received_at_us: Date.UTC(2026, 2, 1) * 1000,
    partition: 0,
    offset: 1,
    position,
    body: '',
  });
  const write = (position: number, writer: string, attempt: bigint) =>
    writeRows(database.clickhouse, EVENT_OUTCOMES, { rows: [outcome(position)], attempt: { writer, attempt } });
  const count = async (condition: string) => {
    const query = `select count() as n from event_outcomes where ${condition}`;
    const answer = await database.clickhouse.query({ query, format: 'JSONEachRow' });
    return Number((await answer.json<{ n: string }>())[0]!.n);
  };

  it('lets the newest try and later ones pass, and no earlier one', async () => {
    await write(1, 'a', 5n);
    await raiseFence(database.clickhouse, { writer: 'a', attempt: 6n });
    const late = await write(2, 'a', 5n).catch((error: { code: string }) => error);
    expect(late).to.have.property('code', 'service_unavailable');
    await write(3, 'a', 6n);
    await write(4, 'a', 7n);
    await write(5, 'b', 1n);
    expect(await count('position between 1 and 5')).to.equal(4);
    expect(await count('position = 2')).to.equal(0);
  });

  it('is raised when no statement of an earlier try runs any more, and nothing of it comes later', async () => {
    const slow = { writer: "slow's", attempt: 8n };
    const statement = database.clickhouse
      .command({
        query: `insert into event_outcomes (event_id, position, offset)
                select 'slow', 100, number from numbers(600) where sleepEachRow(0.1) = 0 and ${buildFenceCondition(slow)}`,
        clickhouse_settings: {
          ...buildStatementMark(slow),
          max_block_size: '1',
          function_sleep_max_microseconds_per_block: '1000000',
        },
      })
      .then(
        () => 'written',
        () => 'ended',
      );
    const running = `select count() as n from system.processes where Settings['log_comment'] like 'farthing/slow%'`;
    await until('the slow statement runs', async () => {
      const answer = await database.clickhouse.query({ query: running, format: 'JSONEachRow' });
      return (await answer.json<{ n: string }>())[0]!.n === '1';
    });
    await raiseFence(database.clickhouse, { writer: "slow's", attempt: 9n });
    const there = await count(`event_id = 'slow'`);
    expect(await statement).to.equal('ended');
    expect(await count(`event_id = 'slow'`)).to.equal(there);
  });
});

describe('marks of bucket rows', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  const row = (month: number, customer: string) => ({
    tenant_id: 't',
    environment_id: 'e',
    meter_id: 'm',
    external_customer_id: customer,
    size: 'HOUR' as const,
    bucket_start_us: Date.UTC(2026, month, 3, 5) * 1000,
    group_key: '',
    count: 1,
    sum: 10n ** 24n,
    weighted_sum: 0n,
    first_us: null,
    last_us: null,
    min: null,
    max: null,
    latest: null,
    uniques: [],
  });
  const put = (rows: ReturnType<typeof row>[], writer: string, attempt: bigint) =>
    writeBucketRows(database.clickhouse, { rows, getVersion: () => 1 }, { writer, attempt });

  it('tell which months of a try arrived, also when everything is merged', async () => {
    await put([row(0, 'a'), row(1, 'a')], 'w', 10n);
    await put([row(1, 'a'), row(2, 'b')], 'w', 12n);
    await put([row(3, 'a')], 'other', 13n);
    await database.clickhouse.command({ query: 'optimize table usage_buckets final' });
    const since = async (number: bigint) => {
      const landed = await listStoredMonths(database.clickhouse, { writer: 'w', since: number });
      return [...landed].sort((a, b) => a - b).map((start) => new Date(start / 1000).getUTCMonth());
    };
    expect(await since(13n)).to.deep.equal([]);
    expect(await since(11n)).to.deep.equal([1, 2]);
    expect(await since(10n)).to.deep.equal([0, 1, 2]);
    const rows = [row(0, 'a'), row(1, 'x'), row(5, 'a')];
    const missing = await findMissingBucketRows(database.clickhouse, rows, { writer: 'w', since: 11n });
    expect(missing.map(({ bucket_start_us }) => new Date(bucket_start_us / 1000).getUTCMonth())).to.deep.equal([0, 5]);
  });

  it('are no bucket rows of anybody', async () => {
    const query = `select tenant_id, size, sum(event_count) as n from usage_buckets where size != 'HOUR' group by tenant_id, size`;
    const answer = await database.clickhouse.query({ query, format: 'JSONEachRow' });
    expect(await answer.json()).to.deep.equal([{ tenant_id: '', size: 'MARK', n: '0' }]);
  });
});
