/**
 * P3: the whole path, compared with raw inserts of the same events into the same engine by its client, as JSONEachRow. CPU time of engine
 * and client counts, including remaining merges. Raw inserts write no log, detect no duplicate ids, measure nothing and get prepared rows.
 * The target is CPU time. Events per second of elapsed time are reported as well, with equal numbers of connections, until all events can
 * be queried.
 */
import { type RawInserter, startRawInserter } from './processes.ts';
import { check, claim, fixed, flag, micros, say } from './report.ts';
import { type WholePath, WholePathBench } from './whole-path.ts';

const MUST = 0.5;
/** Rows per insert: a request of a producer, the least that ClickHouse recommends, and a slice of this service. */
const ROWS_PER_INSERT = [1_000, 10_000, 50_000];

export async function run(): Promise<void> {
  const events = flag('events', 200_000);
  const runs = flag('runs', 3);
  const bench = await WholePathBench.start(events);
  const raw = await startRawInserter();
  const found: Found[] = [];
  try {
    await bench.service.call({ what: 'command', sql: RAW_TABLE });
    await bench.run();
    await rawRun(bench, raw, { seed: 100, events, rows_per_insert: 10_000 });
    for (let index = 0; index < runs; index++) {
      const ours = await bench.run();
      const inserts: RawFound[] = [];
      for (const rows_per_insert of ROWS_PER_INSERT) {
        const seed = 101 + index * ROWS_PER_INSERT.length + inserts.length;
        inserts.push(await rawRun(bench, raw, { seed, events, rows_per_insert }));
      }
      found.push({ ours, inserts });
      const each = inserts.map(({ cost, rate }) => `${fixed(cost)} (${Math.round(rate)}/s)`).join(', ');
      say(
        `  run ${index + 1}: whole path ${fixed(ours.total)} µs/event (${Math.round(ours.elapsed_rate)}/s); raw ${each}`,
      );
    }
    await bench.verify();
    await verifyRaw(bench, events * (1 + runs * ROWS_PER_INSERT.length));
    report(found);
  } finally {
    raw.stop();
    await bench.stop();
  }
}

type Found = { ours: WholePath; inserts: RawFound[] };

/** The mean of all runs, because the cost of a run depends on the merges that happen during it, on both sides. */
function report(found: readonly Found[]): void {
  const ours = mean(found.map((one) => one.ours.total));
  const clock = mean(found.map((one) => one.ours.elapsed_rate));
  for (const [at, rows] of ROWS_PER_INSERT.entries()) {
    const inserts = found.map((one) => one.inserts[at]!);
    const ratio = mean(inserts.map(({ cost }) => cost)) / ours;
    const rate = clock / mean(inserts.map((one) => one.rate));
    const worst = Math.min(...found.map((one) => one.inserts[at]!.cost / one.ours.total));
    const measured = `${fixed(ratio, 2)}, worst run ${fixed(worst, 2)}; on the clock ${fixed(rate, 2)}`;
    claim(`P3 against raw inserts of ${rows} rows`, measured, `${MUST}`, ratio >= MUST);
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The columns of the service's own table, without the log position. */
const RAW_TABLE = `create table bench_raw (
  tenant_id LowCardinality(String), environment_id LowCardinality(String), external_customer_id String,
  event_name LowCardinality(String), timestamp DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)), event_id String,
  source LowCardinality(String), properties String CODEC(ZSTD(1)))
  engine = MergeTree partition by toYYYYMM(timestamp)
  order by (tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id)`;

type RawRun = { seed: number; events: number; rows_per_insert: number };
/** CPU microseconds per event, and events per second of elapsed time. */
type RawFound = { cost: number; rate: number };
/** Equal to the connections of the whole path's load generator. */
const CONNECTIONS = 4;

async function rawRun(
  bench: WholePathBench,
  raw: RawInserter,
  { seed, events, rows_per_insert }: RawRun,
): Promise<RawFound> {
  const url = await bench.service.call<string>({ what: 'clickhouse_url' });
  const go = await raw.prepare({ url, seed, total: events, rows_per_insert, connections: CONNECTIONS });
  const before = bench.service.cpu().clickhouse + raw.cpu();
  const began = performance.now();
  await go();
  const rate = (events / (performance.now() - began)) * 1000;
  await bench.service.waitUntilMerged();
  return { cost: micros(bench.service.cpu().clickhouse + raw.cpu() - before, events), rate };
}

async function verifyRaw(bench: WholePathBench, events: number): Promise<void> {
  const [row] = await bench.service.call<{ n: string }[]>({ what: 'sql', sql: 'select count() as n from bench_raw' });
  check(row!.n === String(events), `${row!.n} raw rows, ${events} were inserted`);
}
