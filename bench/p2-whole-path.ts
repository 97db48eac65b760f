/**
 * P2: accepted → deduplicated → metered → queryable, in events per second per core consumed, on the embedded stores. All processes and
 * stores count, except the load generator. The naive way for comparison: one produce and one insert per event. `--kept=400` also measures
 * the cost of keeping the running usage of so many customers in the cache.
 */
import { DAY_MS } from '../core/foundation/time/durations.ts';
import type { Service } from './processes.ts';
import { claim, fixed, flag, median, micros, say } from './report.ts';
import { formatLine, type WholePath, WholePathBench } from './whole-path.ts';

const MUST_PER_CORE = 40_000;
const NAIVE_EVENTS = 500;

export async function run(): Promise<void> {
  const events = flag('events', 200_000);
  const runs = flag('runs', 3);
  const bench = await WholePathBench.start(events);
  try {
    await bench.run(); // The first run is the warm-up: compilers, connections, first parts.
    const found: WholePath[] = [];
    for (let index = 0; index < runs; index++) {
      found.push(await bench.run());
      say(`  run ${index + 1}: ${formatLine(found.at(-1)!)}`);
    }
    await bench.verify();
    const naive = await onePerEvent(bench.service);
    report(found, naive);
  } finally {
    await bench.stop();
  }
  await withLines(events, runs);
}

/**
 * Measures the whole path while the usage of running periods is cached (docs/decisions/0007-cached-answers.md), for each meter of the
 * customers with the most events. A second service without cached usage alternates with it, so that other load on the machine affects both.
 * Only node and Postgres are compared: the cache causes no work in ClickHouse, whose merges vary more between runs than the cache costs.
 */
async function withLines(events: number, runs: number): Promise<void> {
  const customers = flag('kept', 0);
  if (customers === 0) return;
  const benches: WholePathBench[] = [];
  const found: [WholePath[], WholePath[]] = [[], []];
  try {
    for (const _ of found) benches.push(await WholePathBench.start(events));
    for (const bench of benches) await bench.run();
    const { service, meter_ids } = benches[1]!;
    const range = { start_ms: Date.now() - KEPT_MS, end_ms: Date.now() + KEPT_MS };
    const lines = await service.call<number>({ what: 'keep_lines', meter_ids, customers, ...range });
    say(`  ${lines} running usages of the ${customers} largest customers are kept by the second of two services:`);
    for (let index = 0; index < runs; index++)
      for (const [which, bench] of benches.entries()) {
        found[which]!.push(await bench.run());
        say(`  run ${index + 1}, ${which === 0 ? 'none' : 'kept'}: ${formatLine(found[which]!.at(-1)!)}`);
      }
    await benches[1]!.verify();
  } finally {
    for (const bench of benches) await bench.stop();
  }
  reportLines(...found);
}

function reportLines(without: readonly WholePath[], kept: readonly WholePath[]): void {
  const of = (some: readonly WholePath[], part: (one: WholePath) => number) => median(some.map(part));
  const before = of(without, ({ total }) => total);
  const ours = ({ node, postgres }: WholePath) => node + postgres;
  const more = of(kept, ours) - of(without, ours);
  const all = of(kept, ({ total }) => total);
  say(`  of all processes ${fixed(before)} µs/event without, ${fixed(all)} with`);
  claim(
    'P2 with running usage kept',
    `${fixed(more)} µs/event more of node and Postgres (${fixed(of(without, ours))}, ${fixed(of(kept, ours))}): ${fixed((more / before) * 100)} % of all that an event costs`,
    'a tenth',
    more <= before / 10,
  );
}

const KEPT_MS = 60 * DAY_MS;

function report(found: readonly WholePath[], naive: number): void {
  const rates = found.map((one) => one.events_per_core);
  const ours = median(rates);
  say(
    `  naive (one produce and one insert per event): ${fixed(naive)} µs/event, ours is ${fixed((naive * ours) / 1e6)} times as fast`,
  );
  const measured = `${Math.round(ours)} events/s per core, worst run ${Math.round(Math.min(...rates))}`;
  claim('P2 whole path', measured, `${MUST_PER_CORE}`, ours >= MUST_PER_CORE);
}

/**
 * Commits each event to a Postgres table in its own transaction, then inserts it into ClickHouse by its own statement. CPU time of both
 * stores and of this process counts.
 */
async function onePerEvent(service: Service): Promise<number> {
  await service.call({ what: 'postgres', sql: 'create table bench_produce (id bigserial primary key, body text)' });
  await service.call({
    what: 'command',
    sql: 'create table bench_naive (event_id String, customer String, body String) engine = MergeTree order by (customer, event_id)',
  });
  const before = service.cpu().total;
  for (let index = 0; index < NAIVE_EVENTS; index++) {
    const body = `{"event_id":"e${index}","tokens":${index}}`;
    await service.call({ what: 'postgres', sql: `insert into bench_produce (body) values ('${body}')` });
    await service.call({ what: 'command', sql: `insert into bench_naive values ('e${index}', 'acme', '${body}')` });
  }
  return micros(service.cpu().total - before, NAIVE_EVENTS);
}
