/**
 * Saves work of the server and round trips. A prepared statement is parsed and planned once per connection. BEGIN, and the writes whose
 * result nobody needs, are sent with the next statement of their transaction. If one of them fails, the server skips the statements after it,
 * and the next statement fails with its error.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { isStalePlan } from '../../foundation/failure.ts';
import { type AnswerCallback, readStatementText } from './when-answered.ts';

/** Option of a frequent statement whose best plan is the same for all values, such as one that finds rows by their ids. */
export const PREPARED = { is_prepared: true } as const;
/** Option of a write in a transaction whose result is not needed. COMMIT reports its failure, if no statement before it does. */
export const DEFERRED = { is_prepared: true, is_deferred: true } as const;

type SentStatement = {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly is_prepared?: boolean;
  readonly is_deferred?: boolean;
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
  /** Names of the prepared statements by their text. */
  #names = new Map<string, string>();
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
      this.#deferred.push(text === BEGIN ? { text } : (statement as SentStatement));
      return answered(null, NO_ROWS);
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
    const configs = statements.map((statement) => this.#toConfig(statement, added));
    const last = configs.pop()!;
    const query = configs.length > 0 ? new BundledQuery(configs, last) : last;
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
    if (this.#names.get(text) === name) this.#names.delete(text);
    delete this.#protocol.parsedStatements[name];
    delete this.#protocol.submittedNamedStatements[name];
    this.#protocol.close({ type: 'S', name });
  }

  #toConfig(statement: SentStatement, added: [text: string, name: string][]): object {
    if (!statement.is_prepared) return { ...statement };
    if (this.#schema_version !== schema_version) for (const [text, name] of this.#names) this.#forget(text, name);
    this.#schema_version = schema_version;
    const { text } = statement;
    let name = this.#names.get(text);
    if (name === undefined) {
      if (this.#names.size >= NAMES_MAX) return { ...statement };
      name = `${this.#prefix}_${++this.#names_made}`;
      this.#names.set(text, name);
      added.push([text, name]);
    }
    return { ...statement, name };
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

/** Methods of the driver's Query that are overridden below, which its types omit. */
type DriverQuery = {
  prepare(connection: pg.Connection): void;
  handleCommandComplete(message: unknown, connection: pg.Connection): void;
  handleError(error: Error, connection: pg.Connection): void;
};
const DriverQuery = pg.Query as unknown as new (statement: object) => DriverQuery;

/** A statement that is sent after others in one message: the server executes all of them before it answers. */
class BundledQuery extends DriverQuery {
  readonly #before: { readonly text?: string }[];

  constructor(before: readonly object[], statement: object) {
    super({ ...statement, queryMode: 'extended' });
    this.#before = [...before];
  }

  override prepare(connection: pg.Connection): void {
    for (const statement of this.#before) new QueryWithoutSync(statement).prepare(connection);
    super.prepare(connection);
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#before.shift() === undefined) super.handleCommandComplete(message, connection);
  }

  override handleError(error: Error, connection: pg.Connection): void {
    const [failed] = this.#before;
    if (failed) error.message = `${failed.text?.slice(0, 300)} - ${error.message}`;
    super.handleError(error, connection);
  }
}

/** A statement after which the server does not answer yet. */
class QueryWithoutSync extends DriverQuery {
  _getRows(connection: pg.Connection): void {
    connection.execute({ portal: '' }, true);
  }
}
