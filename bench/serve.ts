/**
 * Child process that runs the service as `npm start` does, or only its accepting part, on new embedded stores. It answers requests of the
 * parent over the IPC channel, which costs nothing while no request is sent.
 */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { computeInvoice } from '../actions/invoicing/invoices/compute-invoice.ts';
import { billDuePeriods } from '../actions/lifecycle/billing/bill-period.ts';
import { finalizeInvoice } from '../actions/lifecycle/invoices/finalize-by-hand.ts';
import { finalizeDueInvoices } from '../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { auditUsage, type UsageDifference } from '../actions/operations/audit/usage.ts';
import { buildApp, buildListener } from '../api/app.ts';
import type { Services } from '../api/http/services.ts';
import { readConfig } from '../config.ts';
import type { Scope } from '../core/foundation/scope.ts';
import { startPipeline } from '../pipeline/pipeline.ts';
import { makeHttpServer } from '../process/http-server.ts';
import { startService } from '../service.ts';
import { migrate } from '../sql/migrate.ts';
import { loadLiveUsage } from '../storage/cache/live-usage-query.ts';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import { mapConcurrently } from '../storage/concurrency/batch-loader.ts';
import { startEmbedded } from '../storage/embedded/stack.ts';
import { openLog } from '../storage/log/open-log.ts';
import { MeterModel } from '../storage/models/metering/meter.ts';
import { bootstrap } from '../storage/models/operations/bootstrap.ts';
import { connectPostgres, PROCESS_POOL, readUrl } from '../storage/postgres/pool/postgres.ts';
import { requestDailyRollups } from '../storage/progress/daily-rollups-message.ts';
import { readUsageReport } from '../storage/usage/usage.ts';
import { UsageCache } from '../storage/usage/usage-cache.ts';
import { startUsageFeed } from '../storage/usage/usage-feed.ts';
import { type BlockedIntervals, watchBlockedIntervals } from './blocked-intervals.ts';
import { type RequestTimes, watchRequests } from './request-times.ts';

type Asked =
  | { what: 'sql'; sql: string }
  | { what: 'command'; sql: string }
  | { what: 'timed'; sql: string; times: number }
  | { what: 'postgres'; sql: string }
  | { what: 'lag' }
  | { what: 'clickhouse_url' }
  | { what: 'store_urls' }
  | { what: 'usage'; meter_id: string; customer: string; start_us: number; end_us: number; times: number }
  | { what: 'audit'; meter_id: string }
  | { what: 'daily_rollups'; days_before: number }
  | { what: 'keep_lines'; meter_ids: readonly string[]; customers: number; start_ms: number; end_ms: number }
  | { what: 'heap' }
  | { what: 'watch_requests' }
  | { what: 'watched_requests' }
  | { what: 'watch_stretches' }
  | { what: 'watched_stretches' }
  | ({ what: 'billing'; scope: Scope; now: string } & BillingPart)
  | { what: 'stop'; keep: boolean };

/**
 * `whole`: all of `npm start`. `unscheduled`: without the scheduler, whose audit would report the rows that a benchmark writes directly.
 * `api`: only the accepting part. `beside`: the API as a separate process (`npm run api`) on the stores of another service.
 */
export type Part = 'whole' | 'unscheduled' | 'api' | 'beside';

type Wanted = { part: Part; dir: string; settings: Record<string, string> };

const { part, dir, settings } = JSON.parse(process.argv[2]!) as Wanted;
const config = readConfig({ ...settings, PORT: '0', DATA_DIR: dir, LOG_LEVEL: 'warn' });
// The benchmark may end during the start.
process.on('disconnect', () => process.exit(1));
const running = await start();

let watched_requests: (() => RequestTimes) | null = null;
let watched_stretches: (() => Promise<BlockedIntervals>) | null = null;

process.on('message', ({ id, asked }: { id: number; asked: Asked }) => {
  answer(asked).then(
    (value) => process.send!({ id, value }),
    (error: Error) => process.send!({ id, error: error.stack ?? String(error) }),
  );
});
process.send!({ ready: { url: running.url, api_key: running.api_key, pids: running.pids } });

async function answer(asked: Asked): Promise<unknown> {
  const { clickhouse, postgres, log } = running.services;
  switch (asked.what) {
    case 'sql': {
      const result = await clickhouse.query({ query: asked.sql, format: 'JSONEachRow' });
      return result.json();
    }
    case 'command':
      await clickhouse.command({ query: asked.sql, clickhouse_settings: { wait_end_of_query: 1 } });
      return null;
    case 'timed':
      return timed(asked);
    case 'postgres':
      return (await postgres.raw(asked.sql)).rows;
    case 'lag':
      return (await log.lag()).reduce((sum, partition) => sum + partition.unprocessed_records, 0);
    case 'clickhouse_url':
      return clickhouseUrl();
    case 'store_urls':
      return { DATABASE_URL: readUrl(postgres), CLICKHOUSE_URL: clickhouseUrl() };
    case 'usage':
      return usage(asked);
    case 'audit': {
      const found: UsageDifference[] = [];
      const report = await auditUsage(running.services, { meter_id: asked.meter_id }, (difference) =>
        found.push(difference),
      );
      return { ...report, found: found.slice(0, 3) };
    }
    case 'daily_rollups':
      return requestDailyRollups(postgres, asked.days_before);
    case 'keep_lines':
      return keepLines(asked);
    case 'heap':
      gc!();
      return process.memoryUsage().heapUsed;
    case 'watch_requests':
      watched_requests = watchRequests();
      return null;
    case 'watched_requests':
      return watched_requests!();
    case 'watch_stretches':
      watched_stretches = await watchBlockedIntervals();
      return null;
    case 'watched_stretches':
      return watched_stretches!();
    case 'billing':
      return watched(() => billed(asked));
    case 'stop':
      await running.stop();
      if (!asked.keep) rmSync(dir, { recursive: true, force: true });
      setImmediate(() => process.exit(0));
      return null;
  }
}

/** Bills as the scheduler's jobs do, or one invoice after the other. */
type BillingPart = { part: 'drafts' | 'final' } | { part: 'one by one'; invoice_ids: readonly string[] };

async function billed({ scope, ...asked }: { scope: Scope; now: string } & BillingPart): Promise<unknown> {
  const { services } = running;
  const now = new Date(asked.now);
  if (asked.part === 'one by one') return oneByOne(scope, asked.invoice_ids, now);
  if (asked.part === 'drafts') return billDuePeriods(services, now, { only: scope });
  return finalizeDueInvoices(services, { now, delay_seconds: 0, only: scope });
}

async function oneByOne(scope: Scope, invoice_ids: readonly string[], now: Date): Promise<null> {
  for (const id of invoice_ids) {
    await computeInvoice(running.services, scope, id, now);
    await finalizeInvoice(running.services, scope, id, now);
  }
  return null;
}

/** Keeps the running usage of each meter of the first customers in the cache, as repeated queries would. */
async function keepLines({ meter_ids, customers, ...range }: Extract<Asked, { what: 'keep_lines' }>): Promise<number> {
  const { services } = running;
  const { postgres } = services;
  const [scope] = (await postgres.raw(`select tenant_id, environment_id from meters where id = ?`, [meter_ids[0]!]))
    .rows;
  const meters = [...(await MeterModel.byId(scope, meter_ids, postgres)).values()];
  const wanted = meters.flatMap((meter) => Array.from({ length: customers }, (_, n) => ({ meter, n })));
  const always = { timezone: 'UTC', billing_anchor_ms: range.start_ms, now_ms: Date.now() };
  await mapConcurrently(64, wanted, ({ meter, n }) =>
    loadLiveUsage(services, scope, { meter, external_customer_ids: [`customer_${n}`], ...range, ...always }),
  );
  return wanted.length;
}

/** Returns the result with the time that it took and the growth of memory meanwhile. */
async function watched(work: () => Promise<unknown>) {
  const [before, cpu] = [process.memoryUsage().rss, process.cpuUsage()];
  let most = before;
  const looking = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 100);
  const began = performance.now();
  const report = await work();
  const seconds = (performance.now() - began) / 1000;
  clearInterval(looking);
  const { user, system } = process.cpuUsage(cpu);
  return { report, seconds, cpu_seconds: (user + system) / 1e6, bytes: most - before };
}

/** The service does not export the address of its engine, so it is read from the client's connection. */
function clickhouseUrl(): string {
  const { connectionParams } = running.services.clickhouse as unknown as {
    connectionParams: { url: URL; auth: { username: string; password: string }; database: string };
  };
  const url = new URL(connectionParams.url);
  url.username = connectionParams.auth.username;
  url.password = connectionParams.auth.password;
  url.pathname = `/${connectionParams.database}`;
  return url.href;
}

/** Runs the statement repeatedly; returns its value and the milliseconds of each run. */
async function timed({ sql, times }: { sql: string; times: number }) {
  const took: number[] = [];
  let value = '';
  for (let time = 0; time < times; time++) {
    const began = performance.now();
    const result = await running.services.clickhouse.query({ query: sql, format: 'JSONEachRow' });
    const [row] = await result.json<{ value: string }>();
    took.push(performance.now() - began);
    value = row!.value;
  }
  return { value, took };
}

/** Queries the usage repeatedly; returns the answer and the milliseconds of each query. */
async function usage({ meter_id, customer, start_us, end_us, times }: Extract<Asked, { what: 'usage' }>) {
  const { postgres } = running.services;
  const [scope] = (await postgres.raw(`select tenant_id, environment_id from meters where id = ?`, [meter_id])).rows;
  const took: number[] = [];
  let value = '';
  let from = '';
  for (let time = 0; time < times; time++) {
    const began = performance.now();
    const question = { meter: { id: meter_id }, external_customer_ids: [customer], start_us, end_us };
    const report = await readUsageReport(running.services, scope, question);
    took.push(performance.now() - began);
    value = report.usage[0]?.total.value.toFixed() ?? '0';
    from = report.source;
  }
  return { value, from, took };
}

function start() {
  if (part === 'whole') return startWhole();
  return part === 'beside' ? startBeside() : startParts();
}

async function startBeside() {
  const logger = pino({ level: 'warn' });
  const postgres = connectPostgres(config.DATABASE_URL!, PROCESS_POOL);
  const clickhouse = connectClickHouse(config.CLICKHOUSE_URL!);
  const log = await openLog(config, { postgres, logger });
  const usage_cache = new UsageCache({ isFed: true });
  startUsageFeed(postgres, usage_cache);
  const services: Services = { postgres, clickhouse, log, config, logger, clock: () => new Date(), usage_cache };
  const { url, close } = await serve(buildListener(services));
  const stop = async () => {
    close();
    await log.close();
    await Promise.all([postgres.destroy(), clickhouse.close()]);
  };
  return { url, api_key: config.BOOTSTRAP_API_KEY!, services, stop, pids: [] };
}

async function serve(listener: RequestListener): Promise<{ url: string; close(): void }> {
  const server = makeHttpServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

async function startWhole() {
  const service = await startService(config);
  return { ...service, pids: service.pids() };
}

async function startParts() {
  const logger = pino({ level: 'warn' });
  const embedded = await startEmbedded({ dir, log: () => {} });
  const postgres = connectPostgres(embedded.postgres_url, { pool_max: 30 });
  const clickhouse = connectClickHouse(embedded.clickhouse_url);
  await migrate({ postgres, clickhouse }, {});
  const { api_key } = await bootstrap(postgres, { api_key: undefined, now: new Date() });
  const log = await openLog(config, { postgres, logger });
  const services: Services = { postgres, clickhouse, log, config, logger, clock: () => new Date() };
  const options = { owner: 'bench', slice_events_max: config.SLICE_EVENTS_MAX, logger, clock: () => new Date() };
  const pipeline = part === 'unscheduled' ? await startPipeline(services, options) : undefined;
  const { url, close } = await serve(buildApp(services));
  const stop = async () => {
    close();
    await pipeline?.stop();
    await log.close();
    await Promise.all([postgres.destroy(), clickhouse.close()]);
    await embedded.stop();
  };
  return { url, api_key, services, stop, pids: embedded.pids() };
}
