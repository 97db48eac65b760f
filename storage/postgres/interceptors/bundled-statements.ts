/**
 * Saves work of the server and round trips. A prepared statement is parsed and planned once per connection. BEGIN, and the writes whose
 * result nobody needs, are sent with the next statement of their transaction. If one of them fails, the server skips the statements after it,
 * and the next statement fails with its error.
 */
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import pg from 'pg';
import { isStalePlan } from '../../foundation/failure.ts';
import { type AnswerCallback, readStatementText } from './when-answered.ts';

/** Option of a frequent statement whose best plan is the same for all values, such as one that finds rows by their ids. */
export const PREPARED = { is_prepared: true } as const;
/** Option of a write in a transaction whose result is not needed. COMMIT reports its failure, if no statement before it does. */
export const DEFERRED = { is_prepared: true, is_deferred: true } as const;

/** The driver's encoding of a value, which its types omit. An encoded value stays the same. */
const { prepareValue } = createRequire(import.meta.url)('pg/lib/utils') as { prepareValue(value: unknown): unknown };

type SentStatement = {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly is_prepared?: boolean;
  readonly is_deferred?: boolean;
};
type PreparedStatement = {
  readonly name: string;
  /** Columns of its rows, after its first answer. They are not requested again: Postgres refuses a statement whose columns have changed. */
  columns?: ResultColumns;
};

const [BEGIN, COMMIT, ROLLBACK] = ['BEGIN;', 'COMMIT;', 'ROLLBACK'];
const NO_ROWS = { command: '', rowCount: null, rows: [], fields: [] };

/** The connection is in the driver's pipeline mode. */
export function sendInBundles(connection: pg.Client): void {
  const bundler = new StatementBundler(connection);
  const query = (statement: unknown, answered?: AnswerCallback) =>
    answered ? bundler.query(statement, answered) : queryForPromise(bundler, statement);
  Object.assign(connection, { query });
}

function queryForPromise(bundler: StatementBundler, statement: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    bundler.query(statement, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

/** Maximum number of prepared statements of a connection. Each takes some ten kilobytes of the server. */
const NAMES_MAX = 200;
/** Increases when a table has changed, so that all connections prepare their statements again. */
let schema_version = 0;

class StatementBundler {
  readonly #query: (statement: unknown, answered: AnswerCallback) => unknown;
  #deferred: SentStatement[] = [];
  /** Whether BEGIN was requested and the end of the transaction not yet. The driver knows only the state at the last answer. */
  #is_open = false;
  #unanswered = 0;
  /** Prepared statements by their text. */
  #prepared = new Map<string, PreparedStatement>();
  /** Unique, in case that a pooler lends the session to another client afterwards. */
  readonly #prefix = randomBytes(6).toString('hex');
  #names_made = 0;
  #schema_version = schema_version;

  readonly #protocol: Protocol;

  constructor(connection: pg.Client) {
    this.#protocol = (connection as unknown as { connection: Protocol }).connection;
    const query = connection.query.bind(connection) as (statement: unknown, answered: AnswerCallback) => unknown;
    this.#query = (statement, answered) => {
      this.#unanswered++;
      return query(statement, (error, result) => {
        this.#unanswered--;
        answered(error, result);
      });
    };
  }

  query(statement: unknown, answered: AnswerCallback): unknown {
    const text = readStatementText(statement);
    if (text.startsWith('BEGIN')) this.#is_open = true;
    if (text === BEGIN || (this.#is_open && (statement as SentStatement).is_deferred)) {
      return this.#defer(text === BEGIN ? { text } : (statement as SentStatement), answered);
    }
    if (text === ROLLBACK || text === COMMIT) this.#is_open = false;
    const hasBegun = this.#deferred[0]?.text !== BEGIN;
    // SAVEPOINT has sent the writes before it, so ROLLBACK TO takes back those that are still deferred.
    const isTakenBack = text === ROLLBACK || text.startsWith('ROLLBACK TO ');
    if (isTakenBack || (!hasBegun && this.#deferred.length === 1 && text === COMMIT)) {
      this.#deferred = [];
      return hasBegun ? this.#query(statement, answered) : answered(null, NO_ROWS);
    }
    const savepoint = /^RELEASE (SAVEPOINT \w+);?$/.exec(text)?.[1];
    const undo = text === COMMIT ? ROLLBACK : savepoint && `ROLLBACK TO ${savepoint}`;
    if (!undo || this.#deferred.length === 0) return this.#send(statement, answered);
    // After a failure the server skips COMMIT or RELEASE, which leaves the transaction open or failed.
    return this.#send(statement, (error, result) =>
      error ? this.#query(undo, () => answered(error, undefined)) : answered(null, result),
    );
  }

  /**
   * Encodes the values at once. If the driver finds one that it cannot encode, it ends the message there, and the statement after that
   * gets the answer.
   */
  #defer(statement: SentStatement, answered: AnswerCallback): void {
    try {
      const { values = [] } = statement;
      this.#deferred.push({ ...statement, values: values.map((value) => prepareValue(value)) });
    } catch (error) {
      return answered(error as Error, undefined);
    }
    answered(null, NO_ROWS);
  }

  /** Sends a statement after the deferred ones. */
  #send(statement: unknown, answered: AnswerCallback): unknown {
    const before = this.#deferred;
    this.#deferred = [];
    if (isSingle(statement)) return this.#sendBundle([...before, statement], answered);
    if (before.length === 0) return this.#query(statement, answered);
    return this.#sendBundle(before, (error) => (error ? answered(error, undefined) : this.#query(statement, answered)));
  }

  #sendBundle(statements: readonly SentStatement[], answered: AnswerCallback): unknown {
    const isBegun = statements[0]!.text === BEGIN;
    const isInside = this.#is_open && !isBegun;
    const added: [text: string, name: string][] = [];
    const last = statements.at(-1)!;
    const before = statements
      .slice(0, -1)
      .map((statement) => new QueryWithoutAnswer(statement, this.#prepare(statement, added)));
    const prepared = this.#prepare(last, added);
    const query = before.length > 0 || prepared ? new BundledQuery(before, last, prepared) : { ...last };
    return this.#query(query, (error, result) => {
      if (!error) return answered(null, result);
      // The server has prepared a new statement, or has skipped its preparation.
      for (const [text, name] of added) this.#forget(text, name);
      // A statement whose caller has named it cannot be prepared again.
      const isNamed = statements.some((statement) => 'name' in statement);
      if (!isStalePlan(error) || isNamed) return answered(error, undefined);
      schema_version++;
      // Statements that were sent after this one have failed with its transaction.
      if (isInside || (isBegun && this.#unanswered > 0)) return answered(error, undefined);
      // Both are sent at once, so that no other statement of the transaction comes between them.
      if (isBegun) this.#query(ROLLBACK, () => undefined);
      return this.#sendBundle(statements, answered);
    });
  }

  /** Closing a statement that the server does not know is no error, and the driver ignores the answer. */
  #forget(text: string, name: string): void {
    if (this.#prepared.get(text)?.name === name) this.#prepared.delete(text);
    delete this.#protocol.parsedStatements[name];
    delete this.#protocol.submittedNamedStatements[name];
    this.#protocol.close({ type: 'S', name });
  }

  /** Finds the prepared statement, or adds it. Undefined if the statement is not to be prepared. */
  #prepare(statement: SentStatement, added: [text: string, name: string][]): PreparedStatement | undefined {
    if (!statement.is_prepared) return undefined;
    if (this.#schema_version !== schema_version)
      for (const [text, { name }] of this.#prepared) this.#forget(text, name);
    this.#schema_version = schema_version;
    const { text } = statement;
    const known = this.#prepared.get(text);
    if (known !== undefined || this.#prepared.size >= NAMES_MAX) return known;
    const name = `${this.#prefix}_${++this.#names_made}`;
    const prepared: PreparedStatement = { name };
    this.#prepared.set(text, prepared);
    added.push([text, name]);
    return prepared;
  }
}

/** Whether it is one statement. A text of several statements, such as a migration, has no values; a cursor submits itself. */
function isSingle(statement: unknown): statement is SentStatement {
  if (typeof statement !== 'object') return false;
  const { text, values = [] } = statement as SentStatement;
  return text !== undefined && (values.length > 0 || !/;\s*\S/.test(text));
}

/** State and method of the driver's connection that are used above, which its types omit. */
type Protocol = {
  readonly parsedStatements: Record<string, string>;
  readonly submittedNamedStatements: Record<string, string>;
  close(statement: { type: 'S'; name: string }): void;
};

/** State and methods of the driver's Query that are used or overridden below, which its types omit. */
type DriverQuery = {
  readonly text: string;
  readonly _result: ResultColumns;
  queryMode: 'extended';
  _accumulateRows: boolean;
  prepare(connection: pg.Connection): void;
  handleCommandComplete(message: unknown, connection: pg.Connection): void;
  handleError(error: Error, connection: pg.Connection): void;
};
/** State of the driver's Result that depends on the columns alone. */
type ResultColumns = {
  readonly fields: unknown;
  readonly _parsers: unknown;
  readonly _prebuiltEmptyResultObject: unknown;
};
const DriverQuery = pg.Query as unknown as new (statement: string | SentStatement) => DriverQuery;

class SentQuery extends DriverQuery {
  constructor(statement: SentStatement, prepared: PreparedStatement | undefined) {
    // The driver copies an object by the descriptors of its properties, which takes longer than all else here.
    super(prepared ? statement.text : statement);
    if (prepared) Object.assign(this, { values: statement.values, name: prepared.name });
    this.queryMode = 'extended';
  }
}

/** A statement that is sent after others in one message: the server executes all of them before it answers. */
class BundledQuery extends SentQuery {
  readonly #before: QueryWithoutAnswer[];
  readonly #prepared: PreparedStatement | undefined;

  constructor(before: QueryWithoutAnswer[], last: SentStatement, prepared: PreparedStatement | undefined) {
    super(last, prepared);
    this.#before = before;
    this.#prepared = prepared;
  }

  override prepare(connection: pg.Connection): void {
    for (const query of this.#before) query.prepare(connection);
    const columns = this.#prepared?.columns;
    if (columns === undefined) return super.prepare(connection);
    Object.assign(this._result, columns);
    this._accumulateRows = true;
    super.prepare(withoutDescribe(connection));
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#before.shift() !== undefined) return;
    super.handleCommandComplete(message, connection);
    const { fields, _parsers, _prebuiltEmptyResultObject } = this._result;
    if (this.#prepared) this.#prepared.columns ??= { fields, _parsers, _prebuiltEmptyResultObject };
  }

  override handleError(error: Error, connection: pg.Connection): void {
    const [failed] = this.#before;
    if (failed) error.message = `${failed.text.slice(0, 300)} - ${error.message}`;
    super.handleError(error, connection);
  }
}

/** A statement whose rows are not read, and after which the server does not answer yet. */
class QueryWithoutAnswer extends SentQuery {
  override prepare(connection: pg.Connection): void {
    super.prepare(withoutDescribe(connection));
  }

  _getRows(connection: pg.Connection): void {
    connection.execute({ portal: '' }, true);
  }
}

const undescribed = new WeakMap<pg.Connection, pg.Connection>();

/** The connection for a query that does not ask for the columns of its rows. */
function withoutDescribe(connection: pg.Connection): pg.Connection {
  let same = undescribed.get(connection);
  if (same === undefined) {
    same = Object.create(connection, { describe: { value: () => undefined } }) as pg.Connection;
    undescribed.set(connection, same);
  }
  return same;
}
