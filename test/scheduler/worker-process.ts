/** A scheduler in a process of its own, to be killed: `worker-process.ts <postgres url> <clickhouse url> <now> <directory of exports> <keys of secrets> <addresses of providers>`. */
import { pino } from 'pino';
import { readConfig } from '../../config.ts';
import { startScheduler } from '../../scheduler/main.ts';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { QUICK } from '../support/scheduler-process.ts';

const [postgres_url = '', clickhouse_url = '', now = '', directory = '', keys = '', addresses = ''] =
  process.argv.slice(2);
const postgres = connectPostgres(postgres_url);
// A tick whose process was killed three times is given up, and the next slot does its work: it is to come soon.
const config = readConfig({
  BILLING_INTERVAL_SECONDS: '1',
  EXPORT_DIRECTORY: directory,
  SECRETS_KEYS: keys,
  PROVIDER_ADDRESSES: addresses,
});
const log = await openEmbeddedLog(postgres, {
  partition_count: config.LOG_PARTITIONS ?? 1,
  append_timeout_ms: config.LOG_APPEND_TIMEOUT_MS,
});
const stores = { postgres, clickhouse: connectClickHouse(clickhouse_url), log };
startScheduler({ ...stores, config, logger: pino({ level: 'warn' }) }, { clock: () => new Date(now), liveness: QUICK });
process.stdout.write('started\n');
