/** A scheduler in a process of its own on the stores of a test, to be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Services } from '../../api/services.ts';
import { urlOf } from '../../storage/postgres/postgres.ts';
import { testStores } from './stores.ts';

/** How soon the jobs of one that died are taken over, for tests. */
export const QUICK = { beat_ms: 200, dead_after_ms: 1_500 };

export async function startSchedulerProcess({ postgres, clickhouse }: Services, now: Date): Promise<ChildProcess> {
  const question = { query: 'SELECT currentDatabase() AS name', format: 'JSONEachRow' } as const;
  const [database] = await (await clickhouse.query(question)).json<{ name: string }>();
  const clickhouse_url = new URL((await testStores()).clickhouse_url);
  clickhouse_url.pathname = `/${database?.name}`;
  const args = [urlOf(postgres), clickhouse_url.href, now.toISOString()];
  const file = join(import.meta.dirname, '../scheduler/worker-process.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}
