/**
 * The whole service in one process tree: the embedded stores (or those whose URLs are configured), the event log, API, pipeline and
 * scheduler. `main.ts` runs it for operators; the demo and the benchmarks run it themselves.
 */
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { buildListener } from './api/app.ts';
import { listenForAccessChanges } from './api/http/access-changes.ts';
import type { Services } from './api/http/services.ts';
import type { Config } from './config.ts';
import { identityOptions, startPipeline } from './pipeline/pipeline.ts';
import { publishRoles } from './process/build-info.ts';
import type { StartedConsole } from './process/console-source.ts';
import { warnOfExperimental } from './process/experimental.ts';
import { makeLogger } from './process/logger.ts';
import { openDoor } from './process/process-door.ts';
import { reachStores } from './process/reach-stores.ts';
import { startTracing } from './process/tracing.ts';
import { startScheduler } from './scheduler/main.ts';
import { migrate } from './sql/migrate.ts';
import { connectClickHouse } from './storage/clickhouse/clickhouse.ts';
import { startEmbedded } from './storage/embedded/stack.ts';
import { measureLog } from './storage/log/log-metrics.ts';
import { openLog } from './storage/log/open-log.ts';
import { bootstrap } from './storage/models/operations/bootstrap.ts';
import { measureStores } from './storage/monitoring/store-metrics.ts';
import { connectPostgres, PROCESS_POOL } from './storage/postgres/pool/postgres.ts';
import { UsageCache } from './storage/usage/usage-cache.ts';

export type RunningService = {
  /** `http://host:port`; the base URL of the API is this and `/v1`. */
  readonly url: string;
  /** The first API key, returned once: null if an earlier start created it. */
  readonly api_key: string | null;
  readonly services: Services;
  /** User of the first start. */
  readonly first_user: { readonly tenant_id: string; readonly user_id: string };
  /** Finishes work in progress from the outside in: requests, jobs, slices, stores. */
  stop(): Promise<void>;
  /** Process ids of the embedded stores. */
  pids(): number[];
};

type ServiceOptions = {
  clock?: () => Date;
  logger?: Logger;
  /** Starts the build of the console, which is then served; none is served if absent. */
  startConsole?: (logger: Logger) => StartedConsole;
  /** Called if an essential part ended unexpectedly. */
  onDeath?: (part: string, detail: string) => void;
  /** Aborts the start: all started parts are stopped. */
  interruption?: AbortSignal;
};

const QUESTION_CONNECTIONS = 20;
/** Number of connections for queries; the embedded engine runs only four statements at a time. */
const EMBEDDED_QUESTION_CONNECTIONS = 2;

/** Stop functions of the started parts, called in reverse order, also if a later part fails to start. */
type StopHandlers = (() => Promise<unknown>)[];

export async function startService(config: Config, options: ServiceOptions = {}): Promise<RunningService> {
  const stops: StopHandlers = [];
  const stop = async () => {
    const failures: unknown[] = [];
    for (const last of stops.splice(0).reverse()) {
      try {
        await last();
      } catch (error) {
        failures.push(error); // The other parts are still stopped.
      }
    }
    if (failures.length > 0) throw failures[0];
  };
  try {
    return await Promise.race([startParts(config, options, { stops, stop }), interrupted(options.interruption)]);
  } catch (error) {
    await stop().catch(() => undefined); // The cause of the failed start matters more than a failed stop.
    throw error;
  }
}

function interrupted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

async function startParts(
  config: Config,
  { clock = () => new Date(), onDeath, ...options }: ServiceOptions,
  { stops, stop }: { stops: StopHandlers; stop: () => Promise<void> },
): Promise<RunningService> {
  stops.push(await startTracing(config, 'farthing'));
  const logger = options.logger ?? makeLogger(config, 'farthing');
  warnOfExperimental(config, logger);
  // The port is opened first, so that no part starts for a service that no client could reach.
  const door = await openDoor(config);
  stops.push(() => door.close());
  const console = options.startConsole?.(logger);
  if (console) stops.push(() => console.stop());
  const embedded = await startEmbedded({
    dir: config.DATA_DIR,
    postgres_url: config.DATABASE_URL,
    clickhouse_url: config.CLICKHOUSE_URL,
    log: (part, line) => (part === 'directory' ? logger.warn(line) : logger.debug({ part }, line)),
    ...(onDeath ? { onDeath } : {}),
  });
  stops.push(() => embedded.stop());
  const postgres = connectPostgres(embedded.postgres_url, PROCESS_POOL);
  const cluster = config.CLICKHOUSE_CLUSTER;
  const clickhouse = connectClickHouse(embedded.clickhouse_url, { cluster });
  // Requests have their own connections, so that any number of queries leaves the engine free for the pipeline.
  const max_open_connections = config.CLICKHOUSE_URL ? QUESTION_CONNECTIONS : EMBEDDED_QUESTION_CONNECTIONS;
  const questions = connectClickHouse(embedded.clickhouse_url, { cluster, max_open_connections });
  stops.push(async () => Promise.all([postgres.destroy(), clickhouse.close(), questions.close()]));
  await reachStores({ postgres, clickhouse }, { within_ms: 0, logger });
  await migrate({ postgres, clickhouse }, { cluster: config.CLICKHOUSE_CLUSTER });
  const { api_key, user } = await bootstrap(postgres, { api_key: config.BOOTSTRAP_API_KEY, now: clock() });
  const log = await openLog(config, { postgres, logger });
  stops.push(() => log.close());
  measureLog(log, clock);
  measureStores({ postgres, clickhouse, data_dir: config.DATA_DIR, clock });
  const usage_cache = new UsageCache();
  const services: Services = {
    postgres,
    clickhouse,
    log,
    config,
    logger,
    clock,
    usage_cache,
    console,
  };
  const owner = `${hostname()}:${process.pid}`;
  const pipeline = await startPipeline(services, {
    owner,
    slice_events_max: config.SLICE_EVENTS_MAX,
    identities: identityOptions(config),
    logger,
    clock,
  });
  stops.push(() => pipeline.stop());
  const scheduler = startScheduler(services, { clock });
  stops.push(() => scheduler.stop());
  // Access may be changed by other processes: `npm run tenants`, or manual changes in the database.
  const changes = listenForAccessChanges(services);
  stops.push(() => changes.close());
  publishRoles('api', 'pipeline', 'scheduler');
  door.open(buildListener({ ...services, clickhouse: questions }));
  stops.push(() => door.close());
  const first_user = { tenant_id: user.tenant_id, user_id: user.id };
  return { url: door.url, api_key, services, first_user, stop, pids: () => embedded.pids() };
}
