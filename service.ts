/**
 * Everything in one process tree: the embedded stores (or those whose URLs are configured), the event log, API, pipeline
 * and scheduler. `main.ts` runs it for people, the demo and the benchmarks for themselves.
 */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { type Logger, pino } from 'pino';
import { buildApp } from './api/app.ts';
import type { Services } from './api/services.ts';
import type { Config } from './config.ts';
import { identityOptions, startPipeline } from './pipeline/pipeline.ts';
import { startScheduler } from './scheduler/main.ts';
import { migrate } from './sql/migrate.ts';
import { bootstrap } from './storage/bootstrap.ts';
import { connectClickHouse } from './storage/clickhouse.ts';
import { startEmbedded } from './storage/embedded/stack.ts';
import { openEmbeddedLog } from './storage/log/embedded.ts';
import { connectPostgres } from './storage/postgres.ts';

export type RunningService = {
  /** `http://host:port`; the base URL of the interface is this and `/v1`. */
  readonly url: string;
  /** The first API key, shown once: null when it was made by an earlier start. */
  readonly api_key: string | null;
  readonly services: Services;
  /** Finishes what is in hand, from the outside in: requests, jobs, slices, stores. */
  stop(): Promise<void>;
  /** The processes of the embedded stores. */
  pids(): number[];
};

export type ServiceOptions = {
  clock?: () => Date;
  logger?: Logger;
  /** A part that cannot be done without has ended by itself. */
  onDeath?: (part: string, detail: string) => void;
};

/** What was started, to be stopped in the opposite order, also when a later part does not start. */
type Stops = (() => Promise<unknown>)[];

export async function startService(config: Config, options: ServiceOptions = {}): Promise<RunningService> {
  const stops: Stops = [];
  const stop = async () => {
    const failures: unknown[] = [];
    for (const last of stops.splice(0).reverse()) {
      try {
        await last();
      } catch (error) {
        failures.push(error); // The others are stopped all the same.
      }
    }
    if (failures.length > 0) throw failures[0];
  };
  try {
    return await startParts(config, options, { stops, stop });
  } catch (error) {
    await stop().catch(() => undefined); // Why it did not start says more than why it did not stop.
    throw error;
  }
}

async function startParts(
  config: Config,
  { clock = () => new Date(), logger = pino({ level: config.LOG_LEVEL }), onDeath }: ServiceOptions,
  { stops, stop }: { stops: Stops; stop: () => Promise<void> },
): Promise<RunningService> {
  // The port first: nothing is started for a service that nobody could reach.
  const door = await openDoor(config, stops);
  const embedded = await startEmbedded({
    dir: config.DATA_DIR,
    postgres_url: config.DATABASE_URL,
    clickhouse_url: config.CLICKHOUSE_URL,
    log: (part, line) => logger.debug({ part }, line),
    ...(onDeath ? { onDeath } : {}),
  });
  stops.push(() => embedded.stop());
  const postgres = connectPostgres(embedded.postgres_url, { pool_max: 30 });
  const clickhouse = connectClickHouse(embedded.clickhouse_url);
  stops.push(async () => Promise.all([postgres.destroy(), clickhouse.close()]));
  await migrate({ postgres, clickhouse }, { cluster: config.CLICKHOUSE_CLUSTER });
  const { api_key } = await bootstrap(postgres, { api_key: config.BOOTSTRAP_API_KEY, now: clock() });
  const log = await openEmbeddedLog(postgres, {
    partition_count: config.LOG_PARTITIONS,
    append_timeout_ms: config.LOG_APPEND_TIMEOUT_MS,
    batch_events_max: config.SLICE_EVENTS_MAX,
    linger_ms: config.SLICE_WAIT_MS,
    // The lock on the data directory says that no other process works on an embedded Postgres.
    sole_owner: config.DATABASE_URL === undefined,
  });
  stops.push(() => log.close());
  const services: Services = { postgres, clickhouse, log, config, logger, clock };
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
  door.open(buildApp(services));
  stops.push(() => door.close());
  return { url: door.url, api_key, services, stop, pids: () => embedded.pids() };
}

/** Holds the port from the start; until the service is ready it answers 503. */
async function openDoor(config: Config, stops: Stops) {
  let listener: RequestListener = (_request, response) => {
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' });
    response.end(JSON.stringify({ code: 'service_unavailable', http_status_code: 503, message: 'starting' }));
  };
  const server = createServer((request, response) => listener(request, response));
  server.listen(config.PORT, config.HOST);
  await once(server, 'listening');
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= drained(server));
  stops.push(close);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${port}`,
    open: (app: RequestListener) => {
      listener = app;
    },
    close,
  };
}

const DRAIN_MS = 10_000;

/** No new connections; requests in hand are answered, idle connections are closed, and after the bound all of them. */
function drained(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    server.closeIdleConnections();
  });
}
