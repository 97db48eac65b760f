/**
 * Scale: 50 million events of 10,000 customers and 50 meters on one machine. They are ingested as fast as they are accepted. Then the
 * service is restarted, meters are audited against the raw events, and usage is queried. Memory is sampled all the time, by process. The
 * sums of all meters must be exact.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DAY_MS } from '../core/foundation/time/durations.ts';
import { memoryOfTree } from './cpu.ts';
import { computeExpected } from './expected.ts';
import {
  type EmbeddedService,
  makeDailyRollups,
  makeMeters,
  pause,
  startGenerator,
  startService,
} from './processes.ts';
import { check, fixed, flag, median, quantile, say } from './report.ts';
import { seeded, type WorkloadOptions } from './workload.ts';

const ROUND = 500_000;
const CUSTOMERS = 10_000;
const SPAN_MS = 7 * DAY_MS;
/** Start of the generated events, which lie in the week before today. */
const FROM_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - SPAN_MS;
/** A configured key, because a generated one is shown at the first start only. */
const SETTINGS = { BOOTSTRAP_API_KEY: 'farthing-bench-only', DAY_ROWS_AFTER_DAYS: '8' };

export async function run(): Promise<void> {
  const events = flag('events', 50_000_000);
  const rounds = Math.ceil(events / ROUND);
  const workloadOf = (seed: number): WorkloadOptions => ({
    customers: CUSTOMERS,
    from_ms: FROM_MS + ((seed - 1) * SPAN_MS) / rounds,
    span_ms: SPAN_MS / rounds,
  });
  const first = await startService('whole', SETTINGS);
  let service: EmbeddedService | undefined = first;
  try {
    const meter_ids = await makeMeters(first);
    await ingest(first, { rounds, workloadOf });
    await dailyRollups(first);
    await sayDisk(first, rounds * ROUND);
    await verify(first, { meter_ids, rounds, workloadOf });
    service = undefined;
    service = await restart(first);
    await audit(service, meter_ids.slice(0, flag('audit-meters', 5)));
    await ask(service, meter_ids);
  } finally {
    await service?.stop();
  }
}

type Rounds = { rounds: number; workloadOf: (seed: number) => WorkloadOptions };

async function ingest(service: EmbeddedService, { rounds, workloadOf }: Rounds): Promise<void> {
  const generator = await startGenerator();
  const memory = watchMemory(service);
  const began = performance.now();
  try {
    for (let seed = 1; seed <= rounds; seed++) {
      const load = { url: service.url, api_key: service.api_key, seed, total: ROUND, size: 1000, connections: 4 };
      const go = await generator.prepare({ ...load, workload: workloadOf(seed) });
      await go();
      // Bounds the lag of the pipeline to one round, because otherwise the disk alone would bound the log.
      while ((await service.call<number>({ what: 'lag' })) > ROUND / 1000) await pause(100);
      if (seed % Math.ceil(rounds / 10) === 0) progress(service, { seed, began, memory: memory.now() });
    }
    await service.waitUntilMerged();
  } finally {
    generator.stop();
  }
  const seconds = (performance.now() - began) / 1000;
  say(
    `  ${fixed((rounds * ROUND) / 1e6)} M events in ${fixed(seconds, 0)} s: ${Math.round((rounds * ROUND) / seconds)}/s on the clock, generator included`,
  );
  say(`  most memory: ${memory.stop()}`);
}

/** Requests daily rollups as the scheduler does when days are over. */
async function dailyRollups(service: EmbeddedService): Promise<void> {
  const began = performance.now();
  await makeDailyRollups(service);
  const [row] = await service.call<{ n: string }[]>({
    what: 'sql',
    sql: `select count() as n from usage_buckets where size = 'DAY'`,
  });
  say(`  daily rollups of the week: ${row!.n} in ${fixed((performance.now() - began) / 1000)} s`);
}

async function sayDisk(service: EmbeddedService, events: number): Promise<void> {
  const folders = readdirSync(service.dir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'clickhouse')
    .map(({ name }) => {
      const [kilobytes] = execFileSync('du', ['-sk', join(service.dir, name)], { encoding: 'utf8' }).split('\t');
      return { name, bytes: Number(kilobytes) * 1024 };
    });
  // Merged parts stay on the disk for minutes, so its folder is larger than its tables.
  const tables = await service.call<{ name: string; bytes: string }[]>({
    what: 'sql',
    sql: `select table as name, toString(sum(bytes_on_disk)) as bytes from system.parts
           where active and database = currentDatabase() group by table having sum(bytes_on_disk) >= ${events} order by 1`,
  });
  const each = [...tables, ...folders].map(({ name, bytes }) => `${name} ${fixed(Number(bytes) / events)}`);
  say(`  disk, bytes per event: ${each.join(', ')}`);
}

function progress(
  service: EmbeddedService,
  { seed, began, memory }: { seed: number; began: number; memory: string },
): void {
  const seconds = (performance.now() - began) / 1000;
  const { total } = service.cpu();
  const each = fixed((total * 1e6) / (seed * ROUND));
  say(`  ${fixed((seed * ROUND) / 1e6)} M after ${fixed(seconds, 0)} s, ${each} µs of CPU per event so far; ${memory}`);
}

async function verify(service: EmbeddedService, { meter_ids, rounds, workloadOf }: Rounds & { meter_ids: string[] }) {
  const seeds = Array.from({ length: rounds }, (_, index) => index + 1);
  const expected = computeExpected(seeds, ROUND, workloadOf);
  const rows = await service.call<{ meter_id: string; size: string; n: string; s: string }[]>({
    what: 'sql',
    sql: `select meter_id, if(size = 'DAY', 'DAY', 'BASE') as size, sum(event_count) as n, toString(toDecimal256(sum(sum) * 1000, 0)) as s
            from usage_buckets group by meter_id, size`,
  });
  const [stored] = await service.call<{ n: string }[]>({ what: 'sql', sql: 'select count() as n from events' });
  check(stored!.n === String(expected.events), `${stored!.n} events are stored, ${expected.events} were sent`);
  for (const [index, meter_id] of meter_ids.entries()) {
    const own = rows.filter((row) => row.meter_id === meter_id);
    check(own.length === 2, `${own.length} sizes of rows of meter ${index}`);
    for (const row of own) {
      check(row.n === String(expected.counts[index]), `meter ${index} counts ${row.n}, not ${expected.counts[index]}`);
      check(row.s === String(expected.thousandths[index]), `the sum of meter ${index} is ${row.s}`);
    }
  }
  say('  every event is stored once, and the rows of all 50 meters add up to the last digit');
}

async function restart(service: EmbeddedService): Promise<EmbeddedService> {
  await service.stop({ keep: true });
  const began = performance.now();
  const again = await startService('whole', SETTINGS, service.dir);
  const ready = performance.now() - began;
  const sent = { event_name: 'api.operation_0', external_customer_id: 'after the restart', properties: {} };
  await again.post('/events', sent);
  while ((await again.call<number>({ what: 'lag' })) > 0) await pause(20);
  const took = performance.now() - began;
  say(
    `  restart: ready after ${fixed(ready / 1000)} s, the first new event in the stores after ${fixed(took / 1000)} s`,
  );
  return again;
}

async function audit(service: EmbeddedService, meter_ids: readonly string[]): Promise<void> {
  const memory = watchMemory(service);
  const began = performance.now();
  let rows = 0;
  for (const meter_id of meter_ids) {
    const report = await service.call<{ rows: number; differences: number; found: unknown[] }>({
      what: 'audit',
      meter_id,
    });
    check(report.differences === 0, `the audit of ${meter_id} found ${JSON.stringify(report.found)}`);
    rows += report.rows;
  }
  const seconds = (performance.now() - began) / 1000;
  say(
    `  audit of ${meter_ids.length} meters, ${rows} rows: ${fixed(seconds)} s, no difference; most memory: ${memory.stop()}`,
  );
}

const QUESTIONS = 200;

async function ask(service: EmbeddedService, meter_ids: readonly string[]): Promise<void> {
  const random = seeded(7);
  const took: number[] = [];
  for (let question = 0; question < QUESTIONS; question++) {
    const customer = `customer_${Math.floor(CUSTOMERS ** random()) - 1}`;
    const meter_id = meter_ids[Math.floor(random() * meter_ids.length)]!;
    const start_us = (FROM_MS + Math.floor(random() * 3 * DAY_MS)) * 1000;
    const end_us = start_us + Math.floor(random() * 4 * DAY_MS) * 1000;
    const answer = await service.call<{ took: number[] }>({
      what: 'usage',
      meter_id,
      customer,
      start_us,
      end_us,
      times: 1,
    });
    took.push(answer.took[0]!);
  }
  const times = [median(took), quantile(took, 0.99)].map((one) => fixed(one));
  say(
    `  ${QUESTIONS} questions for one customer, ranges that end inside an hour: p50 ${times[0]} ms, p99 ${times[1]} ms`,
  );
}

/** Samples the memory of each process with its descendants, and records the maximum. */
function watchMemory(service: EmbeddedService) {
  const names = ['service', 'ClickHouse', 'Postgres'];
  const most = names.map(() => 0);
  const look = () => {
    const [all, clickhouse, postgres] = service.pids.map((pid) => memoryOfTree([pid])) as [number, number, number];
    const each = [all - clickhouse - postgres, clickhouse, postgres];
    for (const [index, bytes] of each.entries()) most[index] = Math.max(most[index]!, bytes);
    return each;
  };
  const text = (bytes: readonly number[]) =>
    names.map((name, index) => `${name} ${fixed(bytes[index]! / 2 ** 30, 2)} GiB`).join(', ');
  const timer = setInterval(look, 1000);
  return {
    now: () => text(look()),
    stop: () => {
      clearInterval(timer);
      look();
      return text(most);
    },
  };
}
