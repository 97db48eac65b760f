/**
 * P14: exports many events of one tenant to a directory, as a scheduled task does: CSV, compressed CSV, Parquet. The minimum for comparison
 * is the same statement, whose lines the store formats and nobody reads. Memory is that of this process. `--rows=1000000`.
 */
import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildExportFile } from '../actions/reporting/exports/export-file.ts';
import { EXPORT_KINDS } from '../actions/reporting/exports/kinds.ts';
import type { Compression, ExportFormat } from '../core/platform/export/record.ts';
import { createDirectoryDestination } from '../integrations/directory/export-destination.ts';
import { startTestApi, type TestApi } from '../test/support/api.ts';
import { cpuOfTree } from './cpu.ts';
import { check, claim, fixed, flag, say } from './report.ts';

const MUST_ROWS = 200_000;
const MUST_MB = 200;
const MB = 1024 * 1024;
const MARCH = {
  start_us: Date.parse('2026-03-01T00:00:00Z') * 1_000,
  end_us: Date.parse('2026-04-01T00:00:00Z') * 1_000,
};

export async function run(): Promise<void> {
  const rows = flag('rows', 1_000_000);
  const api = await startTestApi({ now: '2026-04-01T00:00:00Z' });
  const directory = mkdtempSync(join(tmpdir(), 'exports-'));
  try {
    await makeEvents(api, rows);
    const floor = await measured(rows, () => readFloor(api));
    report('the store’s own CSV, read and thrown away', rows, floor);
    for (const [format, compression] of [
      ['CSV', 'none'],
      ['CSV', 'gzip'],
      ['PARQUET', 'none'],
    ] as const) {
      const taken = await measured(rows, () => exported(api, { directory, format, compression, rows }));
      const name = `${format}${compression === 'gzip' ? ' packed' : ''}`;
      report(name, rows, taken);
      if (format !== 'CSV' || compression !== 'none') continue;
      const per_second = rows / taken.seconds;
      claim('rows a second, as CSV', fixed(per_second, 0), `${MUST_ROWS}`, per_second >= MUST_ROWS);
      claim('memory that it took', `${fixed(taken.grown_mb, 0)} MB`, `${MUST_MB} MB`, taken.grown_mb <= MUST_MB);
      say(`  ${fixed(taken.cpu / floor.cpu)} times the CPU of the floor`);
    }
  } finally {
    await api.stop();
    rmSync(directory, { recursive: true });
  }
}

async function makeEvents({ services, scope }: TestApi, rows: number): Promise<void> {
  await services.clickhouse.command({
    query: `insert into events (tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id, customer_id, source,
                                properties, received_at, partition, offset, position)
      select '${scope.tenant_id}', '${scope.environment_id}', concat('customer_', toString(number % 2000)), 'api_call',
             toDateTime64('2026-03-01 00:00:00', 6, 'UTC') + toIntervalSecond(number % 2600000), concat('event_', toString(number)), '', 'api',
             concat('{"tokens":', toString(number % 900), ',"model":"large","region":"eu"}'), toDateTime64('2026-03-01 00:00:00', 6, 'UTC'), 0, number, 0
        from numbers(${rows})`,
  });
}

type Taken = { seconds: number; cpu: number; grown_mb: number };

async function measured(rows: number, work: () => Promise<number>): Promise<Taken> {
  (globalThis as { gc?: () => void }).gc?.();
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 50);
  const cpu = cpuOfTree([process.pid]);
  const began = performance.now();
  const done = await work();
  const seconds = (performance.now() - began) / 1_000;
  clearInterval(watch);
  check(done === rows, `${done} rows of ${rows}`);
  return { seconds, cpu: cpuOfTree([process.pid]) - cpu, grown_mb: (most - before) / MB };
}

function report(name: string, rows: number, { seconds, cpu, grown_mb }: Taken): void {
  say(
    `  ${name}: ${fixed(rows / seconds, 0)} rows a second, ${fixed((cpu / rows) * 1e6)} µs of CPU a row, ${fixed(grown_mb, 0)} MB more memory`,
  );
}

async function readFloor({ services, scope }: TestApi): Promise<number> {
  const answer = await services.clickhouse.exec({
    query: `select event_id, event_name, external_customer_id, customer_id, timestamp, received_at, source, properties from events
             where tenant_id = '${scope.tenant_id}' and environment_id = '${scope.environment_id}'
             order by tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id format CSV`,
    clickhouse_settings: { wait_end_of_query: 0, max_threads: 2 },
  });
  let lines = 0;
  for await (const chunk of answer.stream as AsyncIterable<Buffer>)
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
  return lines;
}

type Asked = { directory: string; format: ExportFormat; compression: Compression; rows: number };

async function exported({ services, scope }: TestApi, { directory, format, compression }: Asked): Promise<number> {
  const { signal } = new AbortController();
  const asked = { ...MARCH, now: services.clock(), fields: [], format, compression, signal };
  const file = buildExportFile(services, scope, EXPORT_KINDS.events, asked);
  const key = `${format}.${compression}`;
  const about = { key, content_type: '', signal, begun: null, onBegin: async () => undefined };
  const written = await createDirectoryDestination(directory).write({ ...about, bytes: file.bytes });
  await written.commit();
  const { records, sha256 } = file.total();
  const digest = createHash('sha256');
  for await (const piece of createReadStream(join(directory, key))) digest.update(piece as Buffer);
  check(digest.digest('hex') === sha256, 'the file has another digest than was told');
  return records;
}
