/**
 * P1: durable bulk accepts over HTTP, compared with the minimum cost of any JSON API: Buffer → JSON.parse of the same bodies. Only the
 * accepting part of the service runs; CPU time of its node process and its Postgres counts. Each round measures both.
 */
import { startGenerator, startService } from './processes.ts';
import { check, claim, fixed, flag, median, micros, say } from './report.ts';
import { bulkBodies } from './workload.ts';

const MUST = 0.35;
const WARM_UP_ROUNDS = 4;

export async function run(): Promise<void> {
  const events = flag('events', 200_000);
  const runs = flag('runs', 5);
  const bodies = [...bulkBodies(1, 50_000, 1000)];
  const service = await startService('api');
  const generator = await startGenerator();
  const ratios: number[] = [];
  const send = async (seed: number) => {
    const load = { url: service.url, api_key: service.api_key, seed, total: events, size: 1000, connections: 4 };
    const go = await generator.prepare(load);
    const before = service.cpu();
    const { latencies_ms } = await go();
    const after = service.cpu();
    const of = (part: keyof typeof before) => micros(after[part] - before[part], events);
    return {
      cost: of('total'),
      postgres: of('postgres'),
      clickhouse: of('clickhouse'),
      latency_ms: median(latencies_ms),
    };
  };
  try {
    // The first few hundred requests run interpreted; a service that has run for a minute has compiled its code.
    for (let round = 0; round < WARM_UP_ROUNDS; round++) await send(1);
    ceilingOf(bodies, events);
    for (let index = 0; index < runs; index++) {
      const ceiling = ceilingOf(bodies, events);
      const { cost, postgres, clickhouse, latency_ms } = await send(index + 2);
      ratios.push(ceiling / cost);
      say(
        `  run ${index + 1}: accept ${fixed(cost, 2)} µs/event (Postgres ${fixed(postgres, 2)}, ClickHouse idle ${fixed(clickhouse, 2)}), JSON.parse ${fixed(ceiling, 2)} µs/event, ` +
          `ratio ${fixed(ceiling / cost, 2)}, ${fixed(latency_ms)} ms per body of 1,000`,
      );
    }
    const sql = 'select sum(event_count)::int as n from log_records';
    const [kept] = await service.call<{ n: number }[]>({ what: 'postgres', sql });
    const accepted = events * (runs + WARM_UP_ROUNDS);
    check(kept!.n === accepted, `${kept!.n} events are in the log, ${accepted} were accepted`);
    const ours = median(ratios);
    claim(
      'P1 accept',
      `${fixed(ours, 2)} of the ceiling, worst run ${fixed(Math.min(...ratios), 2)}`,
      `${MUST}`,
      ours >= MUST,
    );
  } finally {
    generator.stop();
    await service.stop();
  }
}

/** CPU microseconds per event for decoding and parsing the bodies, repeated until this number of events. */
function ceilingOf(bodies: readonly Buffer[], events: number): number {
  const before = process.cpuUsage();
  let parsed = 0;
  for (let index = 0; parsed < events; index++) {
    const { events: found } = JSON.parse(bodies[index % bodies.length]!.toString('utf8')) as { events: unknown[] };
    parsed += found.length;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / parsed;
}
