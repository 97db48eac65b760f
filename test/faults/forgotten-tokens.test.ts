/**
 * An import of five years writes a part for each month, table and slice, more in a minute than the engine remembers the tokens
 * of. Who does not know whether an insert before that arrived does not write it a second time.
 */
import { expect } from 'chai';
import { toPartition } from '../../core/metering/event/identity.ts';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { computeEventShard } from '../../storage/progress/corrections.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';
import type { ModelEntry, ModelEvent } from '../support/reference-model.ts';
import { until } from '../support/until.ts';
import { rowDifferences, storeDifferences, usageDifferences } from './compare.ts';
import { type StatementWay, statementsTo } from './statements.ts';

const MONTHS = 60;
const SLICES = 8;
/** Of the slices that come meanwhile: fewer tokens are remembered than they have. The engine's own number is 10,000. */
const WINDOW = (MONTHS * SLICES) / 2;
const PARTITIONS = 2;
const YEARS = { start: '2020-01-01T00:00:00Z', end: '2026-01-01T00:00:00Z' };
const METER = { id: 'm', event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } as const };

describe('an import of five years, while the answer of an insert is awaited', function () {
  this.timeout(300_000);
  let metering: Metering;
  let way: StatementWay;
  const accepted: ModelEntry[] = [];
  let made = 0;

  beforeEach(async () => {
    accepted.length = 0;
    metering = await startMetering({
      partitions: PARTITIONS,
      clickhouse: async (url) => {
        way = await statementsTo(url);
        return connectClickHouse(way.url);
      },
    });
    for (const table of ['events', 'event_identities', 'event_outcomes', 'usage_buckets'])
      await metering.stores.clickhouse.command({
        query: `alter table ${table} modify setting non_replicated_deduplication_window = ${WINDOW}`,
      });
    const { event_name, filters, aggregation } = METER;
    await metering.announce(METER.id, { event_name, filters, aggregation });
    await metering.waitForPipeline();
  });
  afterEach(async () => {
    await metering.stop();
    await way.close();
  });

  /** One event of each month, all of them on this partition of the log. */
  const importYears = async (partition: number) => {
    const events: ModelEvent[] = [];
    while (events.length < MONTHS) {
      const event_id = `call-${made++}`;
      if (toPartition(computeEventShard(SCOPE, event_id), PARTITIONS) !== partition) continue;
      const timestamp = new Date(Date.UTC(2020, 6 + events.length, 3, 4)).toISOString();
      events.push({ event_id, event_name: 'call', external_customer_id: 'acme', timestamp, properties: { n: '1.5' } });
    }
    await metering.send(events);
    accepted.push(...events);
  };
  const countOf = async () => {
    const [row] = await metering.rows<{ n: string }>('select count() as n from events');
    return Number(row!.n);
  };

  for (const kind of ['insert into events', 'insert into usage_buckets']) {
    it(`${kind} is written once`, async () => {
      let met = false;
      way.meet((statement) => {
        if (met || statement.kind !== kind) return undefined;
        met = true;
        return 'answer held';
      });
      await importYears(0);
      await until('an answer is held', async () => way.waiting > 0);
      const before = await countOf();
      for (let slice = 1; slice <= SLICES; slice++) {
        await importYears(1);
        await until('a slice is stored', async () => (await countOf()) >= before + slice * MONTHS);
      }
      await way.release();
      await metering.waitForPipeline();
      const ask = (_meter: unknown, { start, end }: { start: string; end: string }) =>
        metering.usage(METER.id, 'acme', [start, end]);
      expect([
        ...(await usageDifferences(ask, [METER], { accepted, questions: [YEARS] })),
        ...(await storeDifferences(metering.stores, { accepted, prefix: 'call-' })),
        ...(await rowDifferences(metering.stores, [METER])),
      ]).to.deep.equal([]);
    });
  }
});
