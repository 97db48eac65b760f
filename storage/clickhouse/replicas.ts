/**
 * Statements to a cluster of replicas behind one address.
 *
 * One replica answers at a time; the others follow it, and one replaces it when it is unavailable. The engine's own consistent
 * reads from any replica are not safe. A replica lists its rows before it checks whether all have arrived, and a row may arrive in
 * between (docs/operations.md, "ClickHouse"). So an answer from another server than before is discarded: that server first fetches
 * the missing rows, and the read is repeated. An address whose replicas answer in turn is refused.
 *
 * During a takeover the engine rejects a write while the previous one has not reached a quorum. It rejects a read if the newest
 * write has not arrived. Neither has had an effect, and both conditions pass within a moment, so the statement is sent again.
 */
import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { unavailable } from '../../core/foundation/error.ts';
import { quoteName } from './literals.ts';

const AGREED_WITHIN_MS = 10_000;
const PAUSE_MS_MAX = 40;

/** Retries while the replicas disagree. `work` must send one read, or an insert of one part. */
export async function retryUntilReplicasAgree<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  const until = performance.now() + AGREED_WITHIN_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isDisagreement(error) || performance.now() > until) throw error;
    }
    // The pause is random, so that concurrent retries do not collide repeatedly.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * PAUSE_MS_MAX));
  }
}

function isDisagreement(error: unknown): boolean {
  return error instanceof ClickHouseError && BETWEEN_REPLICAS.has(Number(error.code));
}

const BETWEEN_REPLICAS = new Set([
  286, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
  289, // REPLICA_IS_NOT_IN_QUORUM
]);

type ReplicaCallParams = { readonly query?: string; readonly values?: unknown };
type ReplicaAnswer = {
  readonly response_headers: Record<string, string | string[] | undefined>;
  close?(): void;
  readonly stream?: unknown;
};
type ReplicaCall = (params: ReplicaCallParams) => Promise<ReplicaAnswer>;

/** Wraps the client for a cluster. */
export function toReplicaClient(client: ClickHouseClient): ClickHouseClient {
  const answering = new AnsweringReplica(client);
  return new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as ReplicaCall;
      if (!STATEMENTS.has(name)) return method;
      return (params: ReplicaCallParams) => {
        // A stream can be read only once, so it is sent once; its sender handles failures.
        const isSentOnce = params.values !== undefined && !Array.isArray(params.values);
        const send = isSentOnce ? () => method(params) : () => retryUntilReplicasAgree(() => method(params));
        const isRead = name === 'query' || (name === 'exec' && params.values === undefined);
        return isRead ? answering.read(send) : answering.write(send);
      };
    },
  });
}

const STATEMENTS = new Set<string | symbol>(['query', 'exec', 'command', 'insert']);

const TRIES_MAX = 4;
const FETCHED_WITHIN_S = 15;

/** Tracks the server that answers, and ensures that it has all rows. */
class AnsweringReplica {
  readonly #client: ClickHouseClient;
  #server: string | undefined;
  #levelled: Promise<void> | undefined;

  constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  async read(send: () => Promise<ReplicaAnswer>): Promise<ReplicaAnswer> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const answer = await send();
      if (parseServerName(answer) === this.#server) return answer;
      leave(answer);
      await this.#level();
    }
    throw severalAnswer();
  }

  /** A write is valid whichever server acknowledged it. If another server than before answered, the next read checks which has all rows. */
  async write(send: () => Promise<ReplicaAnswer>): Promise<ReplicaAnswer> {
    const answer = await send();
    if (parseServerName(answer) !== this.#server) this.#server = undefined;
    return answer;
  }

  #level(): Promise<void> {
    this.#levelled ??= this.#untilOneHasAll().finally(() => {
      this.#levelled = undefined;
    });
    return this.#levelled;
  }

  async #untilOneHasAll(): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const servers = await fetchAll(this.#client);
      this.#server = [...servers][0];
      if (servers.size === 1) return;
    }
    this.#server = undefined;
    throw severalAnswer();
  }
}

/** Discards an answer that is not read. */
function leave(answer: ReplicaAnswer): void {
  if (answer.stream instanceof Readable) answer.stream.destroy();
  else answer.close?.();
}

function severalAnswer(): Error {
  return unavailable('the usage store (several replicas answer in turn: its address must lead to one at a time)');
}

/**
 * Makes the connected replica fetch its missing rows of every table from the other replicas. Returns the names of all servers that executed
 * a statement; several names mean that the address switched to another replica in between.
 */
async function fetchAll(client: ClickHouseClient): Promise<Set<string>> {
  const response = await client.query({
    query: `select table, currentDatabase() as name from system.replicas where database = currentDatabase()`,
    format: 'JSONEachRow',
  });
  const servers = new Set([parseServerName(response)]);
  for (const { table, name } of await response.json<{ table: string; name: string }>()) {
    const query = `SYSTEM SYNC REPLICA ${quoteName(name)}.${quoteName(table)} LIGHTWEIGHT`;
    const clickhouse_settings = { receive_timeout: FETCHED_WITHIN_S };
    servers.add(parseServerName(await client.command({ query, clickhouse_settings })));
  }
  return servers;
}

/** The display name of the server. */
function parseServerName({ response_headers: headers }: Pick<ReplicaAnswer, 'response_headers'>): string {
  return String(headers['x-clickhouse-server-display-name'] ?? '');
}

const tableQueues = new WeakMap<ClickHouseClient, Map<string, Promise<unknown>>>();

/** Serializes the writes of this process to one table: the engine would reject all but one of them. */
export function writeInOrder<Result>(
  client: ClickHouseClient,
  table: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const queues = tableQueues.get(client) ?? new Map<string, Promise<unknown>>();
  tableQueues.set(client, queues);
  const before = queues.get(table) ?? Promise.resolve();
  const mine = before.then(work, work);
  queues.set(
    table,
    mine.catch(() => {}),
  );
  return mine;
}
