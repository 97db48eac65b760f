/**
 * The interface in a process of its own, to be killed: `api-process.ts <postgres url> <clickhouse url> <now> <directory of exports> <keys of
 * secrets> <addresses of providers>` writes its address.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { buildApp } from '../../../api/app.ts';
import { routes } from '../../../api/resources.ts';
import { readConfig } from '../../../config.ts';
import { makeHttpServer } from '../../../process/http-server.ts';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { openEmbeddedLog } from '../../../storage/log/embedded/embedded.ts';
import { connectPostgres } from '../../../storage/postgres/pool/postgres.ts';

const [postgres_url = '', clickhouse_url = '', now = '', directory = '', keys = '', addresses = ''] =
  process.argv.slice(2);
const postgres = connectPostgres(postgres_url);
const config = readConfig({ EXPORT_DIRECTORY: directory, SECRETS_KEYS: keys, PROVIDER_ADDRESSES: addresses });
const log = await openEmbeddedLog(postgres, {
  partition_count: config.LOG_PARTITIONS ?? 1,
  append_timeout_ms: config.LOG_APPEND_TIMEOUT_MS,
});
const stores = { postgres, clickhouse: connectClickHouse(clickhouse_url), log };
const services = { ...stores, config, logger: pino({ level: 'silent' }), clock: () => new Date(now) };
const server = makeHttpServer(buildApp(services, routes));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
