/**
 * Knex's client, with less work for each statement and transaction. Knex takes an idle connection with two timers and thirty promises, builds
 * even a complete statement with ten more, and defines a hundred methods for each transaction (docs/decisions/0031-round-trips.md).
 */
import { EventEmitter } from 'node:events';
import knex, { type Knex } from 'knex';
import type { Database } from '../../foundation/stores.ts';

/** A statement that Knex need not build: its parameters are `$1`, `$2` and so on. */
export type CompleteStatement = {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly is_prepared?: boolean;
  readonly is_deferred?: boolean;
};
type StatementResult = { readonly rows: readonly Record<string, unknown>[]; readonly command: string };
type PooledConnection = {
  /** Why the pool closes the connection instead of lending it again. */
  __knex__disposed?: unknown;
  query(statement: CompleteStatement | string, answered: (error: Error | null, result: StatementResult) => void): void;
};

/** Methods and state of Knex that are used or overridden below, which its types omit. */
type Pool = {
  readonly destroyed: boolean;
  readonly free: { readonly resource: PooledConnection }[];
  readonly used: { readonly resource: PooledConnection }[];
  readonly pendingAcquires: readonly unknown[];
  _startReaping(): void;
};
type Client = {
  readonly pool?: Pool;
  acquireConnection(): Promise<PooledConnection>;
  releaseConnection(connection: PooledConnection): Promise<void>;
  emit(event: string, ...values: unknown[]): boolean;
  transaction(work: TransactionWork, options: TransactionOptions, outer: TransactionState | null): Promise<unknown>;
};
type TransactionWork = (transaction: Knex.Transaction) => unknown;
type TransactionOptions = Readonly<Record<string, unknown>>;
/** State of a transaction that Knex reads for its savepoints. */
type TransactionState = {
  _lastChild: Promise<unknown>;
  transactor?: Knex.Transaction;
  isCompleted(): boolean;
};

const PgClient = knex({ client: 'pg' }).client.constructor as new (config: object) => Client;

export class StatementClient extends PgClient {
  /** Takes an idle connection at once. Any other is left to the pool, which opens one or waits. */
  override acquireConnection(): Promise<PooledConnection> {
    const { pool } = this;
    const idle = pool?.free.at(-1);
    if (!pool || !idle || pool.destroyed || pool.pendingAcquires.length > 0 || idle.resource.__knex__disposed)
      return super.acquireConnection();
    pool.free.pop();
    pool.used.push(idle);
    pool._startReaping();
    return Promise.resolve(idle.resource);
  }

  /** Savepoints, and transactions with options, are left to Knex. */
  override transaction(
    work: TransactionWork,
    options: TransactionOptions,
    outer: TransactionState | null,
  ): Promise<unknown> {
    const hasOptions = options.connection ?? options.isolationLevel ?? options.readOnly;
    if (outer !== null || hasOptions !== undefined) return super.transaction(work, options, outer);
    return runTransaction(this, work);
  }
}

/** Sends a complete statement on the connection of the transaction, or on one of the pool. */
export async function sendStatement(database: Database, statement: CompleteStatement): Promise<StatementResult> {
  const client = database.client as Client;
  const connection = await client.acquireConnection();
  try {
    if (database.isTransaction && (database as Knex.Transaction).isCompleted())
      throw new Error(`the transaction has ended: ${statement.text.slice(0, 300)}`);
    return await sendOn(client, connection, statement);
  } finally {
    void client.releaseConnection(connection);
  }
}

function sendOn(client: Client, connection: PooledConnection, statement: CompleteStatement): Promise<StatementResult> {
  const { text, values } = statement;
  client.emit('query', { sql: text, bindings: values });
  return new Promise((resolve, reject) => {
    connection.query(statement, (error, result) => {
      if (error === null) return resolve(result);
      error.message = `${text} - ${error.message}`;
      reject(error);
    });
  });
}

async function runTransaction(client: Client, work: TransactionWork): Promise<unknown> {
  const connection = await client.acquireConnection();
  try {
    const { transaction, ended } = openTransaction(client, connection);
    await sendOn(client, connection, { text: 'BEGIN;', values: [] });
    let result: unknown;
    try {
      const running = work(transaction);
      // Work without a promise ends the transaction itself.
      if (!isThenable(running)) return await ended;
      result = await running;
    } catch (error) {
      if (!transaction.isCompleted()) await transaction.rollback().catch(() => undefined);
      throw error;
    }
    if (!transaction.isCompleted()) await transaction.commit();
    return result;
  } finally {
    void client.releaseConnection(connection);
  }
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | undefined)?.then === 'function';
}

/** Client of a transaction. All its statements are sent on one connection. */
const TRANSACTION_CLIENT = Object.assign(Object.create(StatementClient.prototype) as object, {
  transacting: true,
  acquireConnection(this: TransactionClient) {
    return Promise.resolve(this.connection);
  },
  releaseConnection() {
    return Promise.resolve();
  },
  emit(this: TransactionClient, event: string, ...values: unknown[]) {
    this.transactor.emit(event, ...values);
    return this.outer.emit(event, ...values);
  },
  query(this: TransactionClient, connection: PooledConnection, statement: unknown) {
    if (this.transactor.isCompleted()) return Promise.reject(new Error('the transaction has ended'));
    return queryOfKnex.call(this, connection, statement);
  },
});
const queryOfKnex = (PgClient.prototype as unknown as { query(...given: unknown[]): Promise<unknown> }).query;
type TransactionClient = Client & {
  readonly connection: PooledConnection;
  readonly outer: Client;
  readonly transactor: Knex.Transaction;
};

/** Object whose methods all transactions inherit. */
const METHODS = knex({ client: StatementClient as never }) as Knex & { context: object };
const INHERITED = ['version', 'config', 'driver', 'connectionSettings', 'valueForUndefined', 'logger'] as const;

function openTransaction(outer: Client, connection: PooledConnection) {
  let isCompleted = false;
  let markEnded = () => {};
  const ended = new Promise<void>((resolve) => {
    markEnded = resolve;
  });
  const state: TransactionState = { _lastChild: Promise.resolve(), isCompleted: () => isCompleted };
  const transaction = ((table: string) =>
    transaction.client.queryBuilder().table(table)) as unknown as Knex.Transaction;
  const client = Object.assign(Object.create(TRANSACTION_CLIENT), { outer, connection, transactor: transaction });
  for (const name of INHERITED) client[name] = (outer as never)[name];
  Object.setPrototypeOf(transaction, METHODS);
  EventEmitter.call(transaction as never);
  const context = Object.assign(Object.create(METHODS.context), {
    client,
    userParams: {},
    transaction: (work: TransactionWork, options: TransactionOptions = {}) =>
      client.transaction(work, { doNotRejectOnRollback: true, userParams: {}, ...options }, state),
  });
  const end = async (text: string) => {
    isCompleted = true;
    try {
      return await sendOn(client, connection, { text, values: [] });
    } catch (error) {
      // After a failed ROLLBACK, the transaction may still be open on the server.
      if (text === 'ROLLBACK') connection.__knex__disposed = error;
      throw error;
    } finally {
      markEnded();
    }
  };
  // After the end, the connection may belong to another transaction.
  const commit = async () => {
    if (isCompleted) throw new Error('the transaction has ended');
    const { command } = await end('COMMIT;');
    // Postgres answers so, and not by an error, if a statement had failed.
    if (command === 'ROLLBACK') throw new Error('nothing was committed: a statement of the transaction had failed');
  };
  const rollback = async () => {
    if (!isCompleted) await end('ROLLBACK');
  };
  Object.assign(transaction, { context, isTransaction: true, isCompleted: state.isCompleted, commit, rollback });
  state.transactor = transaction;
  return { transaction, ended };
}
