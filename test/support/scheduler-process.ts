/** Starts a scheduler or an API as a process of its own on the stores of a test, so that the test can kill it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Services } from '../../api/http/services.ts';
import { readUrl } from '../../storage/postgres/pool/postgres.ts';
import { testStores } from './stores.ts';

/** Timings for tests, so that the jobs of a dead scheduler are taken over quickly. */
export const QUICK = { beat_ms: 200, dead_after_ms: 1_500 };

export async function startSchedulerProcess(services: Services, now: Date): Promise<ChildProcess> {
  return (await startOn(services, '../scheduler/worker-process.ts', now)).child;
}

/** Starts an API process; `url` is its address. */
export async function startApiProcess(services: Services, now: Date): Promise<{ child: ChildProcess; url: string }> {
  const { child, said } = await startOn(services, '../api/http/api-process.ts', now);
  return { child, url: said };
}

/** Starts the process, which is ready after its first line of output. */
async function startOn({ postgres, clickhouse, config }: Services, script: string, now: Date) {
  const question = { query: 'SELECT currentDatabase() AS name', format: 'JSONEachRow' } as const;
  const [database] = await (await clickhouse.query(question)).json<{ name: string }>();
  const clickhouse_url = new URL((await testStores()).clickhouse_url);
  clickhouse_url.pathname = `/${database?.name}`;
  const providers = [config.SECRETS_KEYS.join(','), config.PROVIDER_ADDRESSES.join(',')];
  const args = [readUrl(postgres), clickhouse_url.href, now.toISOString(), config.EXPORT_DIRECTORY ?? '', ...providers];
  const file = join(import.meta.dirname, script);
  const child = spawn(process.execPath, ['--import', './process/typescript.mjs', file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await once(child.stdout, 'data');
  return { child, said: String(said).trim() };
}
