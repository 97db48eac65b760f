/**
 * P3: the whole path against inserting the same events raw into the same engine, through its client as JSONEachRow, with
 * the engine and the client counted, and the merges that are left. The raw way neither keeps a log nor knows an id twice
 * nor meters anything. The claim is about CPU; beside it stand the events per second on the clock, with as many connections
 * for the one as for the other, until everything can be asked for.
 */
import { type RawInserter, startRawInserter } from './processes.ts';
import { check, claim, fixed, flag, median, micros, say } from './report.ts';
import { WholePathBench } from './whole-path.ts';

const MUST = 0.5;
const ROWS_PER_INSERT = [1_000, 10_000, 50_000];

export async function run(): Promise<void> {
  const events = flag('events', 200_000);
  const runs = flag('runs', 3);
  const bench = await WholePathBench.start(events);
  const raw = await startRawInserter();
  const ratios: number[] = [];
  const rates: number[] = [];
  try {
    await bench.service.ask({ what: 'command', sql: RAW_TABLE });
    await bench.run();
    await rawRun(bench, raw, { seed: 100, events, rows_per_insert: 10_000 });
    for (let index = 0; index < runs; index++) {
      const ours = await bench.run();
      const found: RawFound[] = [];
      for (const rows_per_insert of ROWS_PER_INSERT) {
        const seed = 101 + index * ROWS_PER_INSERT.length + found.length;
        found.push(await rawRun(bench, raw, { seed, events, rows_per_insert }));
      }
      const best = Math.min(...found.map(({ cost }) => cost));
      const fastest = Math.max(...found.map(({ rate }) => rate));
      rates.push(ours.wall_rate / fastest);
      ratios.push(best / ours.total);
      const each = ROWS_PER_INSERT.map((rows, at) => `${fixed(found[at]!.cost)} at ${rows} rows`).join(', ');
      say(
        `  run ${index + 1}: whole path ${fixed(ours.total)} µs/event; raw ${each}; ratio to the best ${fixed(best / ours.total, 2)}; ` +
          `on the clock ${Math.round(ours.wall_rate)}/s against ${Math.round(fastest)}/s at most`,
      );
    }
    await bench.verify();
    await verifyRaw(bench, events * (1 + runs * ROWS_PER_INSERT.length));
    const ours = median(ratios);
    say(
      `  on the clock, both cores and the generator of the events included: ${fixed(median(rates), 2)} of the fastest raw way`,
    );
    claim(
      'P3 against raw inserts',
      `${fixed(ours, 2)}, worst run ${fixed(Math.min(...ratios), 2)}`,
      `${MUST}`,
      ours >= MUST,
    );
  } finally {
    raw.stop();
    await bench.stop();
  }
}

/** The columns of our own table, without the place in the log. */
const RAW_TABLE = `create table bench_raw (
  tenant_id LowCardinality(String), environment_id LowCardinality(String), external_customer_id String,
  event_name LowCardinality(String), timestamp DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)), event_id String,
  source LowCardinality(String), properties String CODEC(ZSTD(1)))
  engine = MergeTree partition by toYYYYMM(timestamp)
  order by (tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id)`;

type RawRun = { seed: number; events: number; rows_per_insert: number };
/** Microseconds of CPU per event, and events per second on the clock. */
type RawFound = { cost: number; rate: number };
/** As many as the generator of the whole path has. */
const CONNECTIONS = 4;

async function rawRun(
  bench: WholePathBench,
  raw: RawInserter,
  { seed, events, rows_per_insert }: RawRun,
): Promise<RawFound> {
  const url = await bench.service.ask<string>({ what: 'clickhouse_url' });
  const go = await raw.prepare({ url, seed, total: events, rows_per_insert, connections: CONNECTIONS });
  const before = bench.service.cpu().clickhouse + raw.cpu();
  const began = performance.now();
  await go();
  const rate = (events / (performance.now() - began)) * 1000;
  await bench.service.settled();
  return { cost: micros(bench.service.cpu().clickhouse + raw.cpu() - before, events), rate };
}

async function verifyRaw(bench: WholePathBench, events: number): Promise<void> {
  const [row] = await bench.service.ask<{ n: string }[]>({ what: 'sql', sql: 'select count() as n from bench_raw' });
  check(row!.n === String(events), `${row!.n} raw rows, ${events} were inserted`);
}
