/**
 * docs/operations.md, "Backup and restore", as it is written there: the workers stand still while Postgres (a base backup of the
 * running server) and ClickHouse (its files) are copied, the APIs go on; then everything but Kafka is lost, and comes back.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { type EmbeddedStack, startEmbedded } from '../../storage/embedded/stack.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import type { FreshDatabase } from '../support/stores.ts';

const TOPIC = 'backup';
const NOWHERE = { postgres_url: 'postgres://nowhere', clickhouse_url: 'http://nowhere' };

/** Two servers with a disk each, which are started and stopped one by one. */
type Servers = {
  readonly postgres: EmbeddedStack;
  readonly clickhouse: EmbeddedStack;
  readonly database: FreshDatabase;
};

describe('a backup of the stores of several processes', function () {
  this.timeout(180_000);
  const disks = mkdtempSync(join(tmpdir(), 'farthing-backup-'));
  let kafka: TestKafka;
  let servers: Servers;
  let cluster: Cluster;
  let meter_id: string;

  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    servers = await startServers(join(disks, 'first'));
    cluster = await begin();
    const meter = { name: 'Calls', event_name: 'call', aggregation: { type: 'SUM', field: 'n' } };
    meter_id = (await cluster.request('POST', '/meters', { body: meter })).body.id;
  });
  after(async () => {
    await cluster?.stop();
    await Promise.all([servers?.postgres.stop(), servers?.clickhouse.stop()]);
    await kafka?.wipe();
    rmSync(disks, { recursive: true, force: true });
  });

  const begin = () =>
    startCluster({ kafka, topic_prefix: TOPIC, database: servers.database, partitions: 3, schedulers: 1 });
  const ingest = async (from: number, count: number) => {
    const events = Array.from({ length: count }, (_, n) => ({
      event_id: `e${from + n}`,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-03-10T10:20:00Z',
      properties: { n: '1.5' },
    }));
    const answer = await cluster.request('POST', '/events/bulk', { body: { events } });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(202);
  };
  const usage = async () => {
    const range = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };
    const { body } = await cluster.request('POST', '/events/usage/meter', { body: { meter_id, ...range } });
    return { value: body.value, event_count: body.event_count };
  };

  it('is made while the APIs accept events', async () => {
    await ingest(0, 500);
    await cluster.waitForPipeline();
    expect(await usage()).to.deep.equal({ value: '750', event_count: 500 });
    for (const role of ['pipeline', 'scheduler'] as const)
      expect(await cluster.process(role, 0).kill('SIGTERM')).to.equal(0);
    await ingest(500, 100);
    await copyPostgres(servers.database, { from: join(disks, 'first'), to: join(disks, 'second') });
    await servers.clickhouse.stop();
    copy(join(disks, 'first', 'clickhouse'), join(disks, 'second', 'clickhouse'));
    // What is in the backup already is sent again, too.
    await ingest(400, 300);
  });

  it('is restored when everything but Kafka is gone, and every event is counted once', async () => {
    for (const { kill } of cluster.processes('api')) await kill('SIGKILL');
    await cluster.stop();
    await servers.postgres.stop();
    rmSync(join(disks, 'first'), { recursive: true });
    servers = await startServers(join(disks, 'second'));
    // On new disks: the workers' own files were not copied.
    cluster = await begin();
    await cluster.waitForPipeline();
    expect(await usage()).to.deep.equal({ value: '1050', event_count: 700 });
    await ingest(0, 700);
    await ingest(700, 10);
    await cluster.waitForPipeline();
    expect(await usage()).to.deep.equal({ value: '1065', event_count: 710 });
  });

  it('is what the audit finds no fault with', async () => {
    const { code, output } = await cluster.run('commands/audit.ts').ended;
    expect(code, output).to.equal(0);
    expect(output).to.match(/^raw_rows: .*, 710 rows: 0 differences$/m);
  });
});

async function startServers(disk: string): Promise<Servers> {
  const log = () => {};
  const [postgres, clickhouse] = await Promise.all([
    startEmbedded({ log, dir: join(disk, 'postgres'), clickhouse_url: NOWHERE.clickhouse_url }),
    startEmbedded({ log, dir: join(disk, 'clickhouse'), postgres_url: NOWHERE.postgres_url }),
  ]);
  const { postgres_url } = postgres;
  const { clickhouse_url } = clickhouse;
  const [pool, client] = [connectPostgres(postgres_url, { pool_max: 2 }), connectClickHouse(clickhouse_url)];
  const close = async () => void (await Promise.all([pool.destroy(), client.close()]));
  return {
    postgres,
    clickhouse,
    database: { postgres: pool, clickhouse: client, postgres_url, clickhouse_url, close },
  };
}

/** What pg_basebackup does: the files of the running server between two calls, and the log that was written meanwhile. */
async function copyPostgres({ postgres }: FreshDatabase, { from, to }: { from: string; to: string }): Promise<void> {
  await postgres.transaction(async (session) => {
    await session.raw(`select pg_backup_start('rehearsal', true)`);
    copy(join(from, 'postgres'), join(to, 'postgres'));
    const { rows } = await session.raw('select labelfile from pg_backup_stop(false)');
    const inside = join('postgres', 'postgres', 'data');
    rmSync(join(to, inside, 'postmaster.pid'));
    writeFileSync(join(to, inside, 'backup_label'), rows[0].labelfile);
    rmSync(join(to, inside, 'pg_wal'), { recursive: true });
    copy(join(from, inside, 'pg_wal'), join(to, inside, 'pg_wal'));
  });
}

/** With owners and rights; files may come and go meanwhile, as they do below a running server. */
function copy(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  execFileSync('cp', ['-a', `${from}/.`, to]);
  rmSync(join(to, 'farthing.lock'), { force: true });
}
