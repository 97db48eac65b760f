/**
 * P2k: accepted → deduplicated → metered → queryable on Kafka, in events per second per core consumed. API, workers, ClickHouse and
 * Postgres count; the broker and the load generator do not. Then it measures events per second of elapsed time with one, two and three
 * workers; broker, stores and generator share their cores.
 */
import { startKafkaService } from './kafka-processes.ts';
import { makeMeters, startGenerator } from './processes.ts';
import { claim, flag, median, say } from './report.ts';
import { formatLine, type WholePath, WholePathBench } from './whole-path.ts';

const MUST_PER_CORE = 30_000;
const WORKERS = [1, 2, 3];

export async function run(): Promise<void> {
  const events = flag('events', 200_000);
  const runs = flag('runs', 3);
  // A slice is one second of one partition, so at the rate of one machine more partitions would make smaller slices.
  const service = await startKafkaService(flag('partitions', WORKERS.length));
  try {
    await service.workers(1);
    const meter_ids = await makeMeters(service);
    const bench = new WholePathBench({ service, generator: await startGenerator(), meter_ids, events });
    try {
      await bench.run(); // The first run is the warm-up: compilers, connections, first parts.
      const found = await several(bench, runs);
      const rates = found.map((one) => one.events_per_core);
      const ours = median(rates);
      const measured = `${Math.round(ours)} events/s per core, worst run ${Math.round(Math.min(...rates))}`;
      claim('P2k whole path on Kafka', measured, `${MUST_PER_CORE}`, ours >= MUST_PER_CORE);
      for (const workers of WORKERS) {
        await service.workers(workers);
        await bench.run();
        const clock = (await several(bench, runs)).map((one) => one.elapsed_rate);
        say(`  ${workers} workers: ${Math.round(median(clock))}/s on the clock`);
      }
      await bench.verify();
    } finally {
      bench.generator.stop();
    }
  } finally {
    await service.stop();
  }
}

async function several(bench: WholePathBench, runs: number): Promise<WholePath[]> {
  const found: WholePath[] = [];
  for (let index = 0; index < runs; index++) {
    found.push(await bench.run());
    say(`  run ${index + 1}: ${formatLine(found.at(-1)!)}`);
  }
  return found;
}
