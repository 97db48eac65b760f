/**
 * `npm run audit -- [--tenant T] [--environment E] [--meter M] [--from ISO --to ISO] [--repair]`
 *
 * Recounts the usage rows from the raw events and prints what differs; the exit code is 1 on any difference that is left, and
 * 2 when there was nothing to be audited of what was asked for.
 * It speaks to the stores of the settings; without settings to those of the data directory: of the service that runs there,
 * or started for the time of the audit, and then the pipeline runs for that time too, because it alone writes usage rows.
 */
import { pino } from 'pino';
import { type AuditWanted, auditUsage, type Difference, isRepaired, repairUsage } from '../actions/audit-usage.ts';
import { type Config, readConfig } from '../config.ts';
import { formatTimestamp, parseTimestamp } from '../core/metering/timestamp.ts';
import { migrate } from '../sql/migrate.ts';
import { connectClickHouse } from '../storage/clickhouse.ts';
import { argumentsOf, leave } from '../storage/command-line.ts';
import { readAddresses } from '../storage/embedded/addresses.ts';
import { holdsInstallation } from '../storage/embedded/data-dir.ts';
import { startEmbedded } from '../storage/embedded/stack.ts';
import { openLog } from '../storage/log/open-log.ts';
import { metersToAudit } from '../storage/meter-versions.ts';
import { connectPostgres } from '../storage/postgres.ts';
import type { Stores } from '../storage/stores.ts';
import { identityOptions, startPipeline } from './pipeline.ts';

const REPAIR_WITHIN_MS = 10 * 60_000;
const PAUSE_MS = 200;

type Meters = Pick<AuditWanted, 'tenant_id' | 'environment_id' | 'meter_id'>;
type Asked = AuditWanted & { readonly meters: Meters; readonly repair: boolean };
type Opened = { readonly stores: Pick<Stores, 'postgres' | 'clickhouse'>; close(): Promise<void> };

async function main(): Promise<number> {
  const asked = askedFor();
  const { stores, close } = await openStores(readConfig());
  try {
    const matching = await metersToAudit(stores.postgres, asked.meters);
    if (matching.length === 0 && Object.values(asked.meters).some((id) => id !== undefined))
      throw new Error('no meter matches --tenant, --environment and --meter');
    const found: Difference[] = [];
    const report = await auditUsage(stores, asked, (difference) => {
      found.push(difference);
      say(textOf(difference));
    });
    say(`audited ${report.meters} meters, ${report.days} days, ${report.rows} rows: ${report.differences} differences`);
    if (matching.length > 0 && report.meters === 0)
      throw new Error('the meters are still being counted: try again later');
    if (found.length === 0) return 0;
    return asked.repair ? await repair(stores, asked, found) : 1;
  } finally {
    await close();
  }
}

/** The pipeline does it, in its own turn among the slices; then the audit is made again. */
async function repair(stores: Opened['stores'], asked: Asked, found: readonly Difference[]): Promise<number> {
  const ids = await repairUsage(stores, found);
  say(`rebuilding what differs (${ids.length} rebuilds)`);
  const until = performance.now() + REPAIR_WITHIN_MS;
  while (!(await isRepaired(stores, ids))) {
    if (performance.now() > until) {
      say('the rebuilds wait for a pipeline: start one, and run the audit again');
      return 1;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const report = await auditUsage(stores, asked, (difference) => say(textOf(difference)));
  say(`rebuilt; audited again: ${report.differences} differences`);
  return report.differences === 0 ? 0 : 1;
}

function askedFor(): Asked {
  const text = { type: 'string' } as const;
  const values = argumentsOf('audit', {
    tenant: text,
    environment: text,
    meter: text,
    from: text,
    to: text,
    repair: { type: 'boolean' },
  });
  const meters = { tenant_id: values.tenant, environment_id: values.environment, meter_id: values.meter };
  const start_us = instantOf('--from', values.from);
  const end_us = instantOf('--to', values.to);
  if (start_us !== undefined && end_us !== undefined && start_us >= end_us)
    leave('audit', `--from ${values.from} is not before --to ${values.to}`);
  return { ...meters, meters, start_us, end_us, repair: values.repair ?? false };
}

function instantOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const instant = parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);
  if (typeof instant === 'string') leave('audit', `${option}: ${text} is not a date or an RFC 3339 date-time`);
  return instant;
}

async function openStores(config: Config): Promise<Opened> {
  const { DATABASE_URL: postgres_url, CLICKHOUSE_URL: clickhouse_url, DATA_DIR } = config;
  if (postgres_url !== undefined && clickhouse_url !== undefined) return connect({ postgres_url, clickhouse_url });
  const running = readAddresses(DATA_DIR);
  // A service may run on one store of its own and one that is configured.
  const given = { ...running, ...(postgres_url && { postgres_url }), ...(clickhouse_url && { clickhouse_url }) };
  if (running && given.postgres_url === running.postgres_url && given.clickhouse_url === running.clickhouse_url) {
    say(`auditing beside the service that runs in ${DATA_DIR}`);
    return connect(running);
  }
  if (postgres_url ?? clickhouse_url)
    leave('audit', 'set both DATABASE_URL and CLICKHOUSE_URL, or none of them for the stores of DATA_DIR');
  if (!holdsInstallation(DATA_DIR)) leave('audit', `there is no installation in DATA_DIR=${DATA_DIR}`);
  return startOwn(config);
}

function connect(urls: { postgres_url: string; clickhouse_url: string }): Opened {
  const stores = { postgres: connectPostgres(urls.postgres_url), clickhouse: connectClickHouse(urls.clickhouse_url) };
  const close = async () => {
    await stores.postgres.destroy();
    await stores.clickhouse.close();
  };
  return { stores, close };
}

async function startOwn(config: Config): Promise<Opened> {
  const logger = pino({ level: config.LOG_LEVEL }, pino.destination(2));
  const embedded = await startEmbedded({
    dir: config.DATA_DIR,
    postgres_url: config.DATABASE_URL,
    clickhouse_url: config.CLICKHOUSE_URL,
    log: (part, line) => logger.debug({ part }, line),
  });
  const { stores, close } = connect(embedded);
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

function textOf(difference: Difference): string {
  const { tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, group_key, field } =
    difference;
  const place = `${tenant_id} ${environment_id} ${meter_id} v${meter_version} ${size} ${formatTimestamp(difference.bucket_start_us)}`;
  const group = group_key === '' ? '' : ` group ${JSON.stringify(group_key)}`;
  return `${place} customer ${JSON.stringify(external_customer_id)}${group}: ${field} is ${difference.stored ?? 'missing'}, should be ${difference.expected ?? 'absent'}`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`audit: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);
