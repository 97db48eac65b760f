/** Sends a workload through the whole path and measures its cost; several benchmarks use it. */
import { computeExpected } from './expected.ts';
import {
  type Generator,
  makeDailyRollups,
  makeMeters,
  type Service,
  startGenerator,
  startService,
} from './processes.ts';
import { check, fixed, micros } from './report.ts';
import { meterDefinitions } from './workload.ts';

export type WholePath = {
  /** CPU microseconds per event, by process; `total` is their sum. */
  readonly total: number;
  readonly node: number;
  readonly clickhouse: number;
  readonly postgres: number;
  readonly events_per_core: number;
  /** Events per second of elapsed time, on all cores, with the generator running. */
  readonly elapsed_rate: number;
};

const BODY_EVENTS = 1000;

export function formatLine({
  total,
  node,
  clickhouse,
  postgres,
  events_per_core,
  elapsed_rate: wall_rate,
}: WholePath): string {
  return (
    `${fixed(total)} µs/event (node ${fixed(node)}, ClickHouse ${fixed(clickhouse)}, Postgres ${fixed(postgres)}), ` +
    `${Math.round(events_per_core)}/s per core, ${Math.round(wall_rate)}/s on the clock`
  );
}

export class WholePathBench {
  readonly service: Service;
  readonly generator: Generator;
  readonly meter_ids: string[];
  readonly #seeds: number[] = [];
  readonly #events: number;

  static async start(events: number): Promise<WholePathBench> {
    const service = await startService();
    const meter_ids = await makeMeters(service);
    return new WholePathBench({ service, generator: await startGenerator(), meter_ids, events });
  }

  constructor(parts: { service: Service; generator: Generator; meter_ids: string[]; events: number }) {
    this.service = parts.service;
    this.generator = parts.generator;
    this.meter_ids = parts.meter_ids;
    this.#events = parts.events;
  }

  /** One run: from the first request until everything can be queried and the resulting merges have ended. */
  async run(): Promise<WholePath> {
    const { service, generator } = this;
    const seed = this.#seeds.length + 1;
    this.#seeds.push(seed);
    const load = { url: service.url, api_key: service.api_key, seed, total: this.#events, size: BODY_EVENTS };
    const go = await generator.prepare({ ...load, connections: 4 });
    const before = service.cpu();
    const began = performance.now();
    await go();
    while ((await service.call<number>({ what: 'lag' })) > 0) await new Promise((resolve) => setTimeout(resolve, 100));
    const wall_s = (performance.now() - began) / 1000;
    await service.waitUntilMerged();
    const after = service.cpu();
    const of = (part: 'total' | 'clickhouse' | 'postgres') => micros(after[part] - before[part], this.#events);
    const total = of('total');
    const clickhouse = of('clickhouse');
    const postgres = of('postgres');
    const node = total - clickhouse - postgres;
    return { total, node, clickhouse, postgres, events_per_core: 1e6 / total, elapsed_rate: this.#events / wall_s };
  }

  /** Checks that every event is stored once, and that the base rows and daily rollups of every meter are exact. */
  async verify(): Promise<void> {
    const { service, meter_ids } = this;
    const expected = computeExpected(this.#seeds, this.#events);
    const [stored] = await service.call<{ n: string; ids: string }[]>({
      what: 'sql',
      sql: 'select count() as n, uniqExact(event_id) as ids from events',
    });
    check(stored!.n === String(expected.events), `${stored!.n} events are stored, ${expected.events} were sent`);
    check(stored!.ids === stored!.n, 'an event is stored twice');
    await makeDailyRollups(service);
    const rows = await service.call<{ meter_id: string; size: string; n: string; s: string }[]>({
      what: 'sql',
      sql: `select meter_id, if(size = 'DAY', 'DAY', 'BASE') as size, sum(event_count) as n, toString(toDecimal256(sum(sum) * 1000, 0)) as s
              from usage_buckets group by meter_id, size`,
    });
    for (const size of ['DAY', 'BASE']) {
      for (const [index, meter_id] of meter_ids.entries()) {
        const row = rows.find((one) => one.meter_id === meter_id && one.size === size);
        const { type } = meterDefinitions()[index]!.aggregation;
        const why = `${size} rows of meter ${index} (${type}): ${JSON.stringify(row)}`;
        check((row?.n ?? '0') === String(expected.counts[index]), `${why}, ${expected.counts[index]} events expected`);
        check(
          (row?.s ?? '0') === String(expected.thousandths[index]),
          `${why}, sum ${expected.thousandths[index]} expected`,
        );
      }
    }
  }

  async stop(): Promise<void> {
    this.generator.stop();
    await this.service.stop();
  }
}
