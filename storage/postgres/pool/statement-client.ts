/**
 * The Postgres client of Knex without the work that Knex repeats for each statement: a text is given numbered parameters once, a statement
 * has no events but `query`, and an idle connection is taken without a timer.
 */
import { EventEmitter } from 'node:events';
import knex, { type Knex } from 'knex';
import { LRUCache } from 'lru-cache';

/** Methods and state of Knex's client that are used or overridden below, which its types omit. */
type Connection = { readonly __knex__disposed?: unknown };
type Pool = {
  readonly destroyed: boolean;
  readonly free: { readonly resource: Connection }[];
  readonly used: { readonly resource: Connection }[];
  readonly pendingAcquires: readonly unknown[];
  _startReaping(): void;
};
type Statement = { readonly sql: string; readonly bindings?: readonly unknown[]; readonly timeout?: number };
type Builder = { readonly _connection?: unknown; toSQL(): Statement | readonly Statement[] };
type Client = {
  readonly pool?: Pool;
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
  positionBindings(sql: string): string;
  query(connection: Connection, statement: Statement): Promise<unknown>;
  processResponse(answer: unknown, runner: Runner): unknown;
  emit(event: string, ...values: unknown[]): boolean;
  transaction(work: TransactionWork, options: TransactionOptions, outer?: OuterTransaction): Promise<unknown>;
  raw(sql: string, bindings?: unknown): Raw;
  runner(builder: Builder): Runner;
};
type Runner = {
  connection: Connection | undefined;
  readonly builder: Builder;
  readonly client: Client;
  run(): Promise<unknown>;
  query(statement: Statement): Promise<unknown>;
  queryArray(statements: readonly Statement[]): Promise<unknown>;
};
type Raw = {
  readonly sql: string;
  readonly bindings: unknown;
  readonly _wrappedBefore?: string;
  readonly _wrappedAfter?: string;
  readonly _timeout?: number;
  _options?: object[];
  set(sql: string, bindings?: unknown): Raw;
  toSQL(): Statement;
};

type TransactionWork = (transaction: Knex.Transaction) => unknown;
type TransactionOptions = Readonly<Record<string, unknown>>;
/** State of a transaction that Knex reads for its savepoints. */
type OuterTransaction = {
  _lastChild: Promise<unknown>;
  transactor?: Knex.Transaction;
  isCompleted(): boolean;
};

const PROBE = knex({ client: 'pg' }).client as Client;
const PgClient = PROBE.constructor as new (config: object) => Client;
const PgRunner = PROBE.runner({ toSQL: () => [] }).constructor as new (client: Client, builder: Builder) => Runner;
const PgRaw = PROBE.raw('').constructor as new (client: Client) => Raw;

/** A text with numbered parameters. `count` is their number; undefined if the text has names or escaped marks as well. */
type PositionedText = { readonly text: string; readonly count: number | undefined };

/** Maximum length of a cached text. A longer text is an insert of many rows, which is hardly ever repeated. */
const CACHED_LENGTH_MAX = 10_000;
const positioned = new LRUCache<string, PositionedText>({ max: 2_000 });

function positionParameters(sql: string): PositionedText {
  const known = positioned.get(sql);
  if (known) return known;
  const text = PgClient.prototype.positionBindings.call(PROBE, sql);
  const found = { text, count: /\?\?|\\\?/.test(sql) ? undefined : sql.split('?').length - 1 };
  if (sql.length <= CACHED_LENGTH_MAX) positioned.set(sql, found);
  return found;
}

/** Sends the statement of a builder. Several statements, or one with a timeout, are left to Knex. */
class StatementRunner extends PgRunner {
  override async run(): Promise<unknown> {
    const { builder, client } = this;
    if (builder._connection !== undefined) return super.run();
    const connection = await client.acquireConnection();
    this.connection = connection;
    try {
      const statement = builder.toSQL();
      if (Array.isArray(statement)) return await this.queryArray(statement);
      const { timeout } = statement as Statement;
      if (timeout !== undefined) return await this.query(statement as Statement);
      return client.processResponse(await client.query(connection, statement as Statement), this);
    } finally {
      void client.releaseConnection(connection);
    }
  }
}

/** A statement whose values are no SQL: its text needs no change but the numbers of its parameters. */
class PlainRaw extends PgRaw {
  options(options: object): this {
    this._options = [...(this._options ?? []), options];
    return this;
  }

  override toSQL(): Statement {
    const { sql, bindings = [], _options = [] } = this;
    if (this._wrappedBefore || this._wrappedAfter || this._timeout) return super.toSQL();
    if (!Array.isArray(bindings) || positionParameters(sql).count !== bindings.length) return super.toSQL();
    if (!bindings.every(isPlainValue)) return super.toSQL();
    return { method: 'raw', sql, bindings, options: Object.assign({}, ..._options) } as Statement;
  }
}

function isPlainValue(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined && typeof value !== 'function';
  if (Array.isArray(value)) return value.every((item) => typeof item !== 'object' && item !== undefined);
  return value instanceof Uint8Array || value instanceof Date;
}

export class StatementClient extends PgClient {
  override positionBindings(sql: string): string {
    return positionParameters(sql).text;
  }

  override raw(sql: string, bindings?: unknown): Raw {
    return new PlainRaw(this).set(sql, bindings);
  }

  override runner(builder: Builder): Runner {
    return new StatementRunner(this, builder);
  }

  /** The pool would create four promises and two timers for an idle connection, too. */
  override acquireConnection(): Promise<Connection> {
    const { pool } = this;
    if (!pool || pool.destroyed || pool.pendingAcquires.length > 0) return super.acquireConnection();
    const idle = pool.free.at(-1);
    if (!idle || idle.resource.__knex__disposed) return super.acquireConnection();
    pool.free.pop();
    pool.used.push(idle);
    pool._startReaping();
    return Promise.resolve(idle.resource);
  }

  /** Savepoints, and transactions with options, are left to Knex. */
  override transaction(work: TransactionWork, options: TransactionOptions, outer?: OuterTransaction): Promise<unknown> {
    const hasOptions = options.connection ?? options.isolationLevel ?? options.readOnly;
    if (outer !== undefined || hasOptions !== undefined) return super.transaction(work, options, outer);
    return runTransaction(this, work);
  }
}

/** Runs the work in a transaction, which is rolled back if the work fails. */
async function runTransaction(client: Client, work: TransactionWork): Promise<unknown> {
  const connection = await client.acquireConnection();
  try {
    const { transaction, commit, rollback } = openTransaction(client, connection);
    await transaction.client.query(connection, 'BEGIN;');
    let result: unknown;
    try {
      result = await work(transaction);
    } catch (error) {
      await rollback();
      throw error;
    }
    await commit();
    return result;
  } finally {
    void client.releaseConnection(connection);
  }
}

/** Client of a transaction. It sends all statements on one connection. */
const TRANSACTION_CLIENT = Object.assign(Object.create(StatementClient.prototype), {
  transacting: true,
  acquireConnection(this: TransactionClient) {
    return Promise.resolve(this.connection);
  },
  releaseConnection() {
    return Promise.resolve();
  },
  emit(this: TransactionClient, event: string, ...values: unknown[]) {
    this.transaction.emit(event, ...values);
    return this.outer.emit(event, ...values);
  },
  query(this: TransactionClient, connection: Connection, statement: Statement) {
    if (this.state.isCompleted()) return Promise.reject(new Error('the transaction has ended'));
    return StatementClient.prototype.query.call(this, connection, statement);
  },
});
type TransactionClient = Client & {
  readonly connection: Connection;
  readonly outer: Client;
  readonly transaction: EventEmitter;
  readonly state: OuterTransaction;
};

/** Object whose methods the objects of transactions inherit. Knex defines a hundred methods for each transaction. */
const METHODS = knex({ client: StatementClient as never }) as Knex & { context: object };
const INHERITED = ['version', 'config', 'driver', 'connectionSettings', 'valueForUndefined', 'logger'] as const;

function openTransaction(outer: Client, connection: Connection) {
  let isCompleted = false;
  const state: OuterTransaction = { _lastChild: Promise.resolve(), isCompleted: () => isCompleted };
  const transaction = ((table: string) => client.queryBuilder().table(table)) as unknown as Knex.Transaction;
  const client = Object.assign(Object.create(TRANSACTION_CLIENT), { outer, connection, transaction, state });
  for (const name of INHERITED) client[name] = (outer as never)[name];
  Object.setPrototypeOf(transaction, METHODS);
  EventEmitter.call(transaction as never);
  const context = Object.assign(Object.create(METHODS.context), {
    client,
    userParams: {},
    transaction: (work: TransactionWork, options: TransactionOptions = {}) =>
      client.transaction(work, { doNotRejectOnRollback: true, userParams: {}, ...options }, state),
  });
  const end = async (sql: string) => {
    const sent = client.query(connection, sql);
    isCompleted = true;
    await sent;
  };
  const commit = () => end('COMMIT;');
  const rollback = () => end('ROLLBACK');
  Object.assign(transaction, { context, isTransaction: true, isCompleted: state.isCompleted, commit, rollback });
  state.transactor = transaction;
  return { transaction, commit, rollback };
}
