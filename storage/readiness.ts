/** Whether a process can do its work: each store it stands on is asked, with bounded patience. Every `/ready` answers this. */
import { pingPostgres } from './postgres.ts';
import type { Stores } from './stores.ts';

const PATIENCE_MS = 2_000;

export type PartState = 'ok' | 'away';
export type Readiness = {
  readonly is_ready: boolean;
  readonly parts: { readonly postgres: PartState; readonly clickhouse: PartState; readonly log: PartState };
};

export async function readinessOf(stores: Stores): Promise<Readiness> {
  const [postgres, clickhouse, log] = await Promise.all([
    stateOf(() => pingPostgres(stores.postgres)),
    stateOf(async () => {
      const answer = await stores.clickhouse.ping();
      if (!answer.success) throw answer.error;
    }),
    stateOf(() => stores.log.ping()),
  ]);
  const parts = { postgres, clickhouse, log };
  return { is_ready: Object.values(parts).every((state) => state === 'ok'), parts };
}

async function stateOf(ping: () => Promise<unknown>): Promise<PartState> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'away'>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS, 'away');
  });
  try {
    return await Promise.race([ping().then(() => 'ok' as const), late]);
  } catch {
    return 'away';
  } finally {
    clearTimeout(timer);
  }
}
