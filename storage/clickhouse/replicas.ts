/**
 * Statements to a cluster of replicas behind one address.
 *
 * One of them answers at a time; the others follow it, and one takes its place when it is away. The engine's own way to read
 * from any of them does not hold: it looks which rows there are before it asks whether all of them have arrived, and in
 * between a row may come (docs/operations.md, "ClickHouse"). So when another server answers than before, its answer is not
 * taken: it fetches what there is first, and is asked again. An address behind which they answer in turn is refused.
 *
 * While replicas take over, the engine refuses a write as long as the one before it is not on enough of them, and a read
 * where the newest write has not arrived. Neither has done anything, and both pass within a moment: they are sent again.
 */
import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { unavailable } from '../../core/error.ts';
import { quoteName } from './literals.ts';

const AGREED_WITHIN_MS = 10_000;
const PAUSE_MS_MAX = 40;

/** Does it again while the replicas do not agree. What `work` sends must be one read, or an insert of one part. */
export async function retryUntilReplicasAgree<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  const until = performance.now() + AGREED_WITHIN_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isDisagreement(error) || performance.now() > until) throw error;
    }
    // By chance, so that those who wait for the same do not meet again and again.
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

/** The same client, for a cluster. */
export function toReplicaClient(client: ClickHouseClient): ClickHouseClient {
  const answering = new AnsweringReplica(client);
  return new Proxy(client, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as ReplicaCall;
      if (!STATEMENTS.has(name)) return method;
      return (params: ReplicaCallParams) => {
        // Data that are read once are sent once; who sends them sees to the rest.
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

/** Which server answers, and that it has what there is. */
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

  /** What was written is written, whoever it was: the next read goes to whoever has it. */
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

/** Nobody reads it. */
function leave(answer: ReplicaAnswer): void {
  if (answer.stream instanceof Readable) answer.stream.destroy();
  else answer.close?.();
}

function severalAnswer(): Error {
  return unavailable('the usage store (several replicas answer in turn: its address must lead to one at a time)');
}

/** Lets whoever answers fetch the rows that it has not got; answers who did. */
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

/** As every server names itself. */
function parseServerName({ response_headers: headers }: Pick<ReplicaAnswer, 'response_headers'>): string {
  return String(headers['x-clickhouse-server-display-name'] ?? '');
}

const tableQueues = new WeakMap<ClickHouseClient, Map<string, Promise<unknown>>>();

/** Writes of one process to one table, one after the other: the engine would refuse all but one of them. */
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
