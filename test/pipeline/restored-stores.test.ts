/** One store is restored to an earlier moment than the other: the partition is refused in words, and no number is given out again. */
import { expect } from 'chai';
import { requestCorrection } from '../../actions/metering/events/request-correction.ts';
import { auditUsage, type UsageDifference } from '../../actions/operations/audit/usage.ts';
import { toPartition } from '../../core/metering/event/identity.ts';
import { Partition } from '../../pipeline/slices/partition.ts';
import { computeEventShard, requestCorrectionsAgain } from '../../storage/progress/corrections.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';

const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;
const SUM = { event_name: 'call', filters: [], aggregation: { type: 'SUM' as const, field: 'n' } };
/** Tables of the pipeline in Postgres. */
const TABLES = [
  'slices',
  'slice_ledger',
  'event_corrections',
  'meter_versions',
  'meter_barriers',
  'log_partitions',
  'log_records',
  'log_outbox',
];

describe('a store that was restored to an earlier moment', () => {
  let metering: Metering;
  beforeEach(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.announce('m', SUM);
    await metering.waitForPipeline();
    await metering.send(Array.from({ length: 10 }, (_, n) => event(`e${n}`, 1)));
    await metering.waitForPipeline();
  });
  afterEach(() => metering.stop());

  const event = (id: string, n: number) => ({
    event_id: id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-10T10:20:00Z',
    properties: { n: String(n) },
  });
  const replaced = (id: string, n: number) =>
    requestCorrection(metering.stores, SCOPE, {
      event_id: id,
      action: 'replace',
      replacement: JSON.stringify(event(id, n)),
      reason: 'test',
      user_id: 'user_1',
      now: new Date(),
    });
  const sql = async (text: string) => void (await metering.stores.postgres.raw(text));
  const clickhouse = (query: string) =>
    metering.stores.clickhouse.command({ query, clickhouse_settings: { mutations_sync: '2' } });
  const savePostgres = async () => {
    for (const table of TABLES) await sql(`create table saved_${table} as table ${table}`);
    await sql(`create table saved_numbers as select last_value, is_called from event_corrections_id_seq`);
  };
  const restorePostgres = async () => {
    await metering.pause();
    for (const table of TABLES.toReversed()) await sql(`delete from ${table}`);
    for (const table of TABLES) await sql(`insert into ${table} overriding system value select * from saved_${table}`);
    await sql(`select setval('event_corrections_id_seq', last_value, is_called) from saved_numbers`);
  };
  const take = async () => {
    const taken = await Partition.take(metering.stores, 0, { owner: 'test' }).catch((error: Error) => error);
    if (taken instanceof Error) return taken.message;
    taken.close();
    return 'taken';
  };
  const usage = () => metering.usage('m', 'acme', MARCH);

  it('Postgres before a correction: the partition is not taken, and its number is not given out again', async () => {
    await savePostgres();
    const lost = await replaced('e1', 100);
    await metering.waitForPipeline();
    await restorePostgres();
    expect(await take()).to.match(/rows of event_corrections at offset \d+.*of different moments; restore both stores/);
    const next = await replaced('e1', 7);
    expect(Number(next.id)).to.be.greaterThan(Number(lost.id));
  });

  it('Postgres before the version of a meter that was counted', async () => {
    await savePostgres();
    await metering.announce('m', { ...SUM, aggregation: { type: 'MAX', field: 'n' } });
    await metering.waitForPipeline();
    await restorePostgres();
    expect(await take()).to.include('ClickHouse has counted version 2 of meter m, and Postgres knows 1');
  });

  it('Postgres before partitions were added, where the partition that it knows has got nothing since', async () => {
    await savePostgres();
    await metering.grow(4);
    const { postgres } = metering.stores;
    const first = async () => (await postgres.raw(`select next_offset from slices where partition = 0`)).rows;
    const before = await first();
    const ids = Array.from({ length: 40 }, (_, n) => `f${n}`);
    const elsewhere = ids.find((id) => toPartition(computeEventShard(SCOPE, id), 4) !== 0)!;
    await metering.send([event(elsewhere, 1)]);
    await metering.waitForPipeline();
    expect(await first()).to.deep.equal(before);
    await restorePostgres();
    expect(await take()).to.match(/ClickHouse has counted events of partition [123], and Postgres has none of it/);
  });

  it('ClickHouse before the last events', async () => {
    await metering.pause();
    await clickhouse(`alter table events delete where event_id = 'e9'`);
    expect(await take()).to.match(/10 events of the offsets 0 to \d+ are stored, and ClickHouse has 9 of them/);
  });

  it('ClickHouse before a correction: refused until that is applied again', async () => {
    const { id } = await replaced('e1', 100);
    await metering.waitForPipeline();
    await metering.pause();
    await clickhouse(`alter table event_corrections delete where true`);
    expect(await take()).to.include(`correction ${id} is applied, and ClickHouse does not have it`);
    await requestCorrectionsAgain(metering.stores.postgres, [id]);
    await metering.resume();
    await metering.waitForPipeline();
    expect(await usage()).to.equal('109');
    const found: UsageDifference[] = [];
    await auditUsage(metering.stores, {}, (difference) => found.push(difference));
    expect(found).to.deep.equal([]);
  });
});
