/**
 * Reports whether a process can do its work: each store is pinged with a timeout. Every `/ready` returns this. Only the
 * stores that the process needs decide. An API that can accept events is ready without ClickHouse: if a load balancer
 * removed it, its clients could not send events.
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
  /** Parts needed to accept events and to serve the records of the catalogue. */
  accepting: ['postgres', 'log'],
  /** Parts needed for usage queries, and for the work of the pipeline and of the scheduler. */
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
