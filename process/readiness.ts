/**
 * Whether a process can do its work: it pings each store with a timeout. Every `/ready` returns this. Only the stores that the work needs
 * decide. An API that can accept events is ready without ClickHouse, because a balancer that removed it would lose its callers' events.
 */
import { runWithTimeout } from '../storage/foundation/in-time.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { pingPostgres } from '../storage/postgres/pool/postgres.ts';

type ReadinessState = 'ok' | 'away';
type ReadinessPart = 'postgres' | 'clickhouse' | 'log';
type Readiness = {
  readonly is_ready: boolean;
  /** The body of every `/ready`. */
  readonly answer: {
    readonly status: 'ok' | 'unavailable';
    readonly parts: Readonly<Record<ReadinessPart, ReadinessState>>;
  };
};

export const NEEDED_FOR = {
  /** Events, and the records of the catalogue. */
  accepting: ['postgres', 'log'],
  /** Usage queries, and the work of the pipeline and of the scheduler. */
  queries: ['postgres', 'clickhouse', 'log'],
} satisfies Record<string, readonly ReadinessPart[]>;

export async function checkReadiness(stores: Stores, needed: readonly ReadinessPart[]): Promise<Readiness> {
  const [postgres, clickhouse, log] = await Promise.all([
    checkPart(() => pingPostgres(stores.postgres)),
    checkPart(async () => {
      const answer = await stores.clickhouse.ping();
      if (!answer.success) throw answer.error;
    }),
    checkPart(() => stores.log.ping()),
  ]);
  const parts = { postgres, clickhouse, log };
  const is_ready = needed.every((part) => parts[part] === 'ok');
  return { is_ready, answer: { status: is_ready ? 'ok' : 'unavailable', parts } };
}

async function checkPart(ping: () => Promise<unknown>): Promise<ReadinessState> {
  return (await runWithTimeout(() => ping().then(() => 'ok' as const))) ?? 'away';
}
