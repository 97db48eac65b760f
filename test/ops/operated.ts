/** A whole service on real stores, on whose ways and in whose tables things go wrong, and which Prometheus scrapes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../config.ts';
import { startService } from '../../service.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { addTick } from '../../storage/queue/jobs.ts';
import { type Cut, cutTo } from '../support/cut.ts';
import { parseSamples, type Scrape } from '../support/promql.ts';
import { isLogProcessed, isSettled } from '../support/settled.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

const KEY = 'farthing-test-key';

export type Operated = {
  /** Past the ways. */
  readonly database: FreshDatabase;
  readonly postgresWay: Cut;
  readonly clickhouseWay: Cut;
  /** As Prometheus sees it, at the time that it is: on a fast machine a hundred of them pass between two jobs. */
  scrape(): Promise<Scrape>;
  request(method: string, path: string, body?: unknown): Promise<Response>;
  /** One event. */
  ingest(): Promise<Response>;
  settled(): Promise<unknown>;
  sql(statement: string): Promise<unknown>;
  /** Puts a job of the clock into the queue. */
  tick(job: string): Promise<unknown>;
  tickUntilAudited(): Promise<unknown>;
  passTime(seconds: number): void;
  passTimeOfPrometheus(seconds: number): void;
  holdConnections(): Promise<void>;
  letConnectionsGo(): Promise<void>;
  /** Keeps the process busy. */
  compute(): Promise<void>;
  stopService(): Promise<void>;
  stop(): Promise<void>;
};

export async function startOperated(): Promise<Operated> {
  const database = await freshDatabase();
  const [postgresWay, clickhouseWay] = await Promise.all([
    wayTo(database.postgres_url),
    wayTo(database.clickhouse_url),
  ]);
  const directory = mkdtempSync(join(tmpdir(), 'farthing-operated-'));
  let passed_seconds = 0;
  const config = readConfig({
    PORT: '0',
    DATA_DIR: directory,
    LOG_LEVEL: 'silent',
    BOOTSTRAP_API_KEY: KEY,
    BILLING_INTERVAL_SECONDS: '1',
    DATABASE_URL: through(database.postgres_url, postgresWay),
    CLICKHOUSE_URL: through(database.clickhouse_url, clickhouseWay),
  });
  const service = await startService(config, { clock: () => new Date(Date.now() + passed_seconds * 1000) });
  let passed_of_prometheus_seconds = 0;
  let events = 0;
  let held: Transaction[] = [];
  const request = (method: string, path: string, body?: unknown) =>
    fetch(`${service.url}/v1${path}`, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const scrape = async (): Promise<Scrape> => {
    const text = await metricsAt(service.url);
    const at_seconds = (performance.timeOrigin + performance.now()) / 1000 + passed_of_prometheus_seconds;
    const up = { name: 'up', labels: { job: 'farthing' }, value: text === null ? 0 : 1 };
    return { at_seconds, samples: [up, ...parseSamples(text ?? '')] };
  };
  const tick = (name: string) => addTick(database.postgres, { name, every_seconds: 1 });
  let isRunning = true;
  const stopService = async () => {
    if (isRunning) await service.stop();
    isRunning = false;
  };
  return {
    database,
    postgresWay,
    clickhouseWay,
    scrape,
    request,
    ingest: () =>
      request('POST', '/events', { event_name: 'call', event_id: `e${++events}`, external_customer_id: 'acme' }),
    settled: () =>
      until('everything is counted', () => isSettled(database.postgres, () => isLogProcessed(service.services.log))),
    sql: (statement) => database.postgres.raw(statement),
    tick,
    tickUntilAudited: async () => {
      await tick('audit-sample');
      return until('it was audited', async () =>
        (await scrape()).samples.some(({ name, value }) => name === 'farthing_audit_last_sample_seconds' && value > 0),
      );
    },
    passTime: (seconds) => {
      passed_seconds += seconds;
    },
    passTimeOfPrometheus: (seconds) => {
      passed_of_prometheus_seconds += seconds;
    },
    holdConnections: async () => {
      const { postgres } = service.services;
      const { max } = postgres.client.pool as { max: number };
      held = await Promise.all(Array.from({ length: max }, () => postgres.transaction()));
    },
    letConnectionsGo: async () => {
      await Promise.all(held.splice(0).map((transaction) => transaction.rollback()));
    },
    compute: async () => {
      for (let times = 0; times < 3; times++) {
        const end = performance.now() + 700;
        while (performance.now() < end);
        await new Promise(setImmediate);
      }
    },
    stopService,
    stop: async () => {
      await stopService();
      await Promise.all([postgresWay.close(), clickhouseWay.close()]);
      await database.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Null where nobody answers. */
async function metricsAt(url: string): Promise<string | null> {
  return fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) }).then(
    (answer) => answer.text(),
    () => null,
  );
}

function wayTo(url: string): Promise<Cut> {
  const { hostname, port } = new URL(url);
  return cutTo({ host: hostname, port: Number(port) });
}

function through(url: string, { port }: Cut): string {
  const changed = new URL(url);
  changed.host = `127.0.0.1:${port}`;
  changed.searchParams.delete('host');
  return changed.href;
}
