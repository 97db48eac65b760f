/**
 * The Postgres client of Knex without the work that Knex repeats for each statement: a text is given numbered parameters once, a statement
 * has no events but `query`, and an idle connection is taken without a timer.
 */
import knex from 'knex';
import { LRUCache } from 'lru-cache';

/** Methods and state of Knex's client that are used or overridden below, which its types omit. */
type PooledConnection = { readonly __knex__disposed?: unknown };
type Pool = {
  readonly destroyed: boolean;
  readonly free: { readonly resource: PooledConnection }[];
  readonly used: { readonly resource: PooledConnection }[];
  readonly pendingAcquires: readonly unknown[];
  _startReaping(): void;
};
type Statement = { readonly sql: string; readonly bindings?: readonly unknown[]; readonly timeout?: number };
type StatementBuilder = { readonly _connection?: unknown; toSQL(): Statement | readonly Statement[] };
type Client = {
  readonly pool?: Pool;
  acquireConnection(): Promise<PooledConnection>;
  releaseConnection(connection: PooledConnection): Promise<void>;
  positionBindings(sql: string): string;
  query(connection: PooledConnection, statement: Statement): Promise<unknown>;
  processResponse(answer: unknown, runner: Runner): unknown;
  raw(sql: string, bindings?: unknown): Raw;
  runner(builder: StatementBuilder): Runner;
};
type Runner = {
  connection: PooledConnection | undefined;
  readonly builder: StatementBuilder;
  readonly client: Client;
  run(): Promise<unknown>;
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

const PROBE = knex({ client: 'pg' }).client as Client;
const PgClient = PROBE.constructor as new (config: object) => Client;
const PgRunner = PROBE.runner({ toSQL: () => [] }).constructor as new (
  client: Client,
  builder: StatementBuilder,
) => Runner;
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
      if ((statement as Statement).timeout !== undefined) return await this.queryArray([statement as Statement]);
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

  override runner(builder: StatementBuilder): Runner {
    return new StatementRunner(this, builder);
  }

  /** The pool would create four promises and two timers for an idle connection, too. */
  override acquireConnection(): Promise<PooledConnection> {
    const { pool } = this;
    if (!pool || pool.destroyed || pool.pendingAcquires.length > 0) return super.acquireConnection();
    const idle = pool.free.at(-1);
    if (!idle || idle.resource.__knex__disposed) return super.acquireConnection();
    pool.free.pop();
    pool.used.push(idle);
    pool._startReaping();
    return Promise.resolve(idle.resource);
  }
}
