/**
 * One process of several. It opens the configured stores and waits for them at the start. One process migrates them to the schema of this
 * version; the others wait. Shutdown runs in order: requests, consumers of the event log, producers of the event log, stores.
 */
import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { type Config, readConfig } from '../config.ts';
import { migrate } from '../sql/migrate.ts';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { measureLog } from '../storage/log/log-metrics.ts';
import { openLog } from '../storage/log/open-log.ts';
import { measureStores } from '../storage/monitoring/store-metrics.ts';
import { watchClock } from '../storage/postgres/pool/clock-skew.ts';
import { connectPostgres, PROCESS_POOL } from '../storage/postgres/pool/postgres.ts';
import { type ProcessRole, publishRoles } from './build-info.ts';
import { warnOfExperimental } from './experimental.ts';
import { explain } from './explain.ts';
import { makeAnnouncer, makeLogger } from './logger.ts';
import { createHealthListener, openDoor } from './process-door.ts';
import { reachStores, retryUntilReachable } from './reach-stores.ts';
import { startTracing } from './tracing.ts';

type ProcessServices = Stores & {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: () => Date;
  /** Identity of this process in leases and fences. */
  readonly owner: string;
};

type ProcessPart = {
  /** Handles requests; if absent, the process serves only health and metrics. */
  readonly listener?: RequestListener;
  /** Ends the work of this process, after all requests are answered. */
  stop?(): Promise<void>;
};

/** How long the start waits for stores that start at the same time. */
const STORES_WITHIN_MS = 60_000;
/** Time limit of a shutdown. It is below the grace period of docker-compose.yml, after which the process is killed. */
const STOP_WITHIN_MS = 25_000;

type StopFunctions = (() => Promise<unknown>)[];

/** Runs the process `name` from start to exit. */
export function runProcess(name: ProcessRole, begin: (services: ProcessServices) => Promise<ProcessPart>): void {
  const stops: StopFunctions = [];
  const announcer = makeAnnouncer(`farthing-${name}`);
  let ending: Promise<never> | undefined;
  const end = (code: number) => {
    if (ending) return;
    ending = stopAll(stops).then((failures) => {
      for (const failure of failures) announcer.error(explain(failure));
      if (failures.length === 0 && code === 0)
        announcer.info(`farthing ${name} has finished what it had in hand, and ends`);
      process.exit(failures.length > 0 ? 1 : code);
    });
    setTimeout(() => {
      announcer.error(`farthing ${name} has not finished within ${STOP_WITHIN_MS / 1000} s, and ends all the same`);
      process.exit(1);
    }, STOP_WITHIN_MS).unref();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (!ending) announcer.info(`farthing ${name} received ${signal}`);
      end(0);
    });
  startAll(name, begin, stops).then(
    (url) => announcer.info(`farthing ${name} is ready at ${url}`),
    (error: unknown) => {
      if (!ending) announcer.fatal(explain(error));
      end(1);
    },
  );
}

async function startAll(
  name: ProcessRole,
  begin: (services: ProcessServices) => Promise<ProcessPart>,
  stops: StopFunctions,
): Promise<string> {
  const config = readConfig();
  const { DATABASE_URL, CLICKHOUSE_URL } = config;
  if (!DATABASE_URL || !CLICKHOUSE_URL) {
    const what = 'a process of its own needs DATABASE_URL and CLICKHOUSE_URL';
    throw new Error(`configuration: ${what}; npm start runs everything with built-in stores`);
  }
  stops.push(await startTracing(config, `farthing-${name}`));
  const logger = makeLogger(config, `farthing-${name}`);
  warnOfExperimental(config, logger);
  const door = await openDoor(config);
  const postgres = connectPostgres(DATABASE_URL, {
    ...PROCESS_POOL,
    log: (message) => logger.warn({ reason: message }, 'Postgres'),
  });
  const clickhouse = connectClickHouse(CLICKHOUSE_URL, { cluster: config.CLICKHOUSE_CLUSTER });
  stops.push(async () => Promise.all([postgres.destroy(), clickhouse.close()]));
  stops.push(() => door.close());
  const patience = { within_ms: STORES_WITHIN_MS, logger };
  await reachStores({ postgres, clickhouse }, patience);
  await retryUntilReachable(() => migrate({ postgres, clickhouse }, { cluster: config.CLICKHOUSE_CLUSTER }), patience);
  const log = await openLog(config, { postgres, logger });
  stops.splice(-1, 0, () => log.close());
  measureLog(log, () => new Date());
  const clock = () => new Date();
  measureStores({ postgres, clickhouse, data_dir: config.DATA_DIR, clock });
  const unwatch = await watchClock(postgres, { clock, logger });
  stops.splice(-1, 0, async () => unwatch());
  const owner = `${hostname()}:${process.pid}`;
  const services = { postgres, clickhouse, log, config, logger, clock, owner };
  const part = await begin(services);
  stops.splice(-1, 0, async () => part.stop?.());
  publishRoles(name);
  door.open(part.listener ?? createHealthListener(services));
  return door.url;
}

/** Stops all parts in reverse order of the start; a failure does not prevent the other stops. */
async function stopAll(stops: StopFunctions): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const stop of stops.splice(0).reverse()) await stop().catch((error: unknown) => failures.push(error));
  return failures;
}
