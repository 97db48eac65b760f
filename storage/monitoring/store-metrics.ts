/**
 * Prometheus metrics of the stores: whether each answers, how busy the connections to Postgres are, and how full the visible disks are. A
 * number that is not available is omitted and never reported as 0.
 */
import { statfs } from 'node:fs/promises';
import { Gauge, register } from 'prom-client';
import { loadRows } from '../clickhouse/clickhouse.ts';
import { runWithTimeout } from '../foundation/in-time.ts';
import type { Stores } from '../foundation/stores.ts';
import { measureClockSkew } from '../postgres/pool/clock-skew.ts';
import { pingPostgres, readPoolState } from '../postgres/pool/postgres.ts';

type MeasuredStores = Pick<Stores, 'postgres' | 'clickhouse'> & {
  readonly data_dir: string;
  readonly clock: () => Date;
};

export function measureStores(measured: MeasuredStores): void {
  measureAnswers(measured);
  measureClock(measured);
  measurePool(measured);
  measureDisks(measured);
}

function measureAnswers({ postgres, clickhouse }: MeasuredStores): void {
  const pings: Record<string, () => Promise<boolean>> = {
    postgres: () => pingPostgres(postgres).then(() => true),
    clickhouse: async () => (await clickhouse.ping()).success,
  };
  gauge({
    name: 'farthing_store_up',
    help: 'Whether the store answers within two seconds; farthing_log_up tells it of the event log',
    labelNames: ['store'],
    async collect() {
      for (const [store, ping] of Object.entries(pings)) this.set({ store }, (await runWithTimeout(ping)) ? 1 : 0);
    },
  });
}

function measureClock({ postgres, clock }: MeasuredStores): void {
  gauge({
    name: 'farthing_clock_skew_seconds',
    help: 'How far the clock of this process is ahead of that of Postgres; below 0 it is behind',
    async collect() {
      const skew = await runWithTimeout(() => measureClockSkew(postgres, clock));
      if (skew === null) this.remove();
      else this.set(skew);
    },
  });
}

function measurePool({ postgres }: MeasuredStores): void {
  const numbers = {
    farthing_postgres_pool_max: ['Connections to Postgres that this process may open', 'max'],
    farthing_postgres_pool_used: ['Connections to Postgres at work', 'used'],
    farthing_postgres_pool_idle: ['Connections to Postgres that are open and free', 'idle'],
    farthing_postgres_pool_waiting: ['Who waits for a connection to Postgres', 'waiting'],
  } as const;
  for (const [name, [help, number]] of Object.entries(numbers)) {
    gauge({
      name,
      help,
      collect() {
        const pool = readPoolState(postgres);
        if (pool) this.set(pool[number]);
        else this.remove();
      },
    });
  }
}

type Disk = { readonly disk: string; readonly free: number; readonly size: number };

function measureDisks(measured: MeasuredStores): void {
  const numbers = {
    farthing_disk_free_bytes: ['Free space for us: of DATA_DIR (data), and of the disks of ClickHouse', 'free'],
    farthing_disk_size_bytes: ['Size of the same disks', 'size'],
  } as const;
  for (const [name, [help, number]] of Object.entries(numbers)) {
    gauge({
      name,
      help,
      labelNames: ['disk'],
      async collect() {
        const found = await Promise.all([
          runWithTimeout(() => dataDisk(measured)),
          runWithTimeout(() => clickhouseDisks(measured)),
        ]);
        this.reset();
        for (const each of found.flatMap((disks) => disks ?? [])) this.set({ disk: each.disk }, each[number]);
      },
    });
  }
}

/** Measures the disk of the data directory. A process without a data directory has no such metric. */
async function dataDisk({ data_dir }: MeasuredStores): Promise<Disk[]> {
  const { bavail, bsize, blocks } = await statfs(data_dir);
  return [{ disk: 'data', free: bavail * bsize, size: blocks * bsize }];
}

/** Measures the disks of ClickHouse. If the user may not read system.disks, only the server's own metrics show them. */
async function clickhouseDisks({ clickhouse }: MeasuredStores): Promise<Disk[]> {
  const query = 'select name, toFloat64(unreserved_space) as free, toFloat64(total_space) as size from system.disks';
  const rows = await loadRows<{ name: string; free: number; size: number }>(clickhouse, 'disks', { query });
  return rows.map(({ name, free, size }) => ({ disk: `clickhouse:${name}`, free, size }));
}

/** Replaces the metric of an earlier start in this process. */
function gauge(configuration: ConstructorParameters<typeof Gauge<string>>[0]): void {
  register.removeSingleMetric(configuration.name);
  new Gauge(configuration);
}
