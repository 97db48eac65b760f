/**
 * The stores that an audit reads: the configured ones, or those of the data directory. The latter belong to a running service, or are
 * started for the audit. Started stores get a pipeline, too, because only a pipeline can write the bucket rows that `--repair` rebuilds.
 */
import { pino } from 'pino';
import type { AuditRecordsInput } from '../actions/operations/audit/records.ts';
import type { Config } from '../config.ts';
import { MINUTE_MS } from '../core/foundation/time/durations.ts';
import { identityOptions, startPipeline } from '../pipeline/pipeline.ts';
import { exitWithUsage } from '../process/command-line.ts';
import { makeLogger } from '../process/logger.ts';
import { migrate } from '../sql/migrate.ts';
import { loadKafkaBounds } from '../storage/audit/kafka-bounds.ts';
import { hasEmbeddedLog } from '../storage/audit/log-accounts.ts';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import type { Addresses } from '../storage/embedded/addresses.ts';
import { hasInstallation } from '../storage/embedded/data-dir.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { buildKafkaConnection, openLog } from '../storage/log/open-log.ts';
import { connectPostgres } from '../storage/postgres/pool/postgres.ts';
import { findRunning, reportDirectory, startBeside } from './reach-postgres.ts';

export type OpenedStores = { readonly stores: Pick<Stores, 'postgres' | 'clickhouse'>; close(): Promise<void> };

/** Timeout of a query, which may read a whole table. */
const ANSWER_WITHIN_MS = 30 * MINUTE_MS;
const REACHED_WITHIN_MS = 10_000;

export async function openStores(config: Config, note: (line: string) => void): Promise<OpenedStores> {
  const { DATABASE_URL: postgres_url, CLICKHOUSE_URL: clickhouse_url, CLICKHOUSE_CLUSTER: cluster, DATA_DIR } = config;
  if (postgres_url !== undefined && clickhouse_url !== undefined)
    return connect({ postgres_url, clickhouse_url }, cluster);
  const found = await findRunning(DATA_DIR);
  const running = found && (await isClickHouseReachable(found)) ? found : undefined;
  // A service may run on one embedded and one configured store.
  const given = { ...running, ...(postgres_url && { postgres_url }), ...(clickhouse_url && { clickhouse_url }) };
  if (running && given.postgres_url === running.postgres_url && given.clickhouse_url === running.clickhouse_url) {
    note(`auditing beside the service that runs in ${DATA_DIR}`);
    return connect(running, cluster);
  }
  if (postgres_url ?? clickhouse_url)
    exitWithUsage('audit', 'set both DATABASE_URL and CLICKHOUSE_URL, or none of them for the stores of DATA_DIR');
  if (!hasInstallation(DATA_DIR)) exitWithUsage('audit', `there is no installation in DATA_DIR=${DATA_DIR}`);
  return startOwnStores(config);
}

/** From another network the socket of Postgres is reachable, and ClickHouse is not. */
async function isClickHouseReachable({ clickhouse_url }: Addresses): Promise<boolean> {
  const clickhouse = connectClickHouse(clickhouse_url, { cluster: undefined, request_timeout_ms: REACHED_WITHIN_MS });
  try {
    return (await clickhouse.ping()).success;
  } finally {
    await clickhouse.close();
  }
}

/** Access to the log for the audit; null if there is none. */
export async function findLog(config: Config, { postgres }: OpenedStores['stores']): Promise<AuditRecordsInput['log']> {
  const { KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: prefix } = config;
  if (brokers !== undefined) return () => loadKafkaBounds(buildKafkaConnection(config, brokers), prefix);
  return (await hasEmbeddedLog(postgres)) ? 'embedded' : null;
}

function connect(urls: { postgres_url: string; clickhouse_url: string }, cluster: string | undefined): OpenedStores {
  const clickhouse = connectClickHouse(urls.clickhouse_url, { cluster, request_timeout_ms: ANSWER_WITHIN_MS });
  const stores = { postgres: connectPostgres(urls.postgres_url), clickhouse };
  const close = async () => {
    await stores.postgres.destroy();
    await stores.clickhouse.close();
  };
  return { stores, close };
}

async function startOwnStores(config: Config): Promise<OpenedStores> {
  const logger = makeLogger(config, 'farthing-audit', pino.destination(2));
  const embedded = await startBeside({
    dir: config.DATA_DIR,
    postgres_url: config.DATABASE_URL,
    clickhouse_url: config.CLICKHOUSE_URL,
    log: (part, line) => (part === 'directory' ? reportDirectory(part, line) : logger.debug({ part }, line)),
  });
  const { stores, close } = connect(embedded, config.CLICKHOUSE_CLUSTER);
  await migrate(stores, { cluster: config.CLICKHOUSE_CLUSTER });
  const log = await openLog(config, { postgres: stores.postgres, logger });
  const { SLICE_EVENTS_MAX: slice_events_max } = config;
  const owner = `audit:${process.pid}`;
  const options = { owner, slice_events_max, logger, clock: () => new Date(), identities: identityOptions(config) };
  const pipeline = await startPipeline({ ...stores, log }, options);
  return {
    stores,
    close: async () => {
      await pipeline.stop();
      await log.close();
      await close();
      await embedded.stop();
    },
  };
}
