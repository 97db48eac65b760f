/**
 * Saves round trips of a transaction: its BEGIN, and the writes whose result nobody needs, are sent with the next statement of the
 * transaction. If one of them fails, the server skips the statements after it, and the next statement fails with its error.
 */
import pg from 'pg';
import { type AnswerCallback, readStatementText } from './when-answered.ts';

/** Option of a write in a transaction whose result is not needed. COMMIT reports its failure, if no statement before it does. */
export const DEFERRED = { is_deferred: true } as const;

type SentStatement = { readonly text: string; readonly values?: readonly unknown[]; readonly is_deferred?: boolean };
type SendStatement = (statement: unknown, answered: AnswerCallback) => unknown;

const [BEGIN, COMMIT, ROLLBACK] = ['BEGIN;', 'COMMIT;', 'ROLLBACK'];
const NO_ROWS = { command: '', rowCount: null, rows: [], fields: [] };

/** Each statement of the connection must have a callback, and be sent after the answer to the one before. */
export function deferStatements(connection: pg.Client): void {
  const query: SendStatement = connection.query.bind(connection);
  let deferred: SentStatement[] = [];

  const sendAll: SendStatement = (statement, answered) => {
    const before = deferred;
    deferred = [];
    if (before.length === 0) return query(statement, answered);
    if (isSingle(statement)) return query(new QueryAfter(before, statement), answered);
    const last = before.pop()!;
    return query(new QueryAfter(before, last), (error: Error | null) =>
      error ? answered(error, undefined) : query(statement, answered),
    );
  };

  const sendOrDefer: SendStatement = (statement, answered) => {
    const text = readStatementText(statement);
    const isOpen = deferred.length > 0 || connection.getTransactionStatus() === 'T';
    if (text === BEGIN || (isOpen && (statement as SentStatement).is_deferred)) {
      deferred.push(text === BEGIN ? { text } : (statement as SentStatement));
      return answered(null, NO_ROWS);
    }
    const hasBegun = deferred[0]?.text !== BEGIN;
    if (text === ROLLBACK || (!hasBegun && deferred.length === 1 && text === COMMIT)) {
      deferred = [];
      return hasBegun ? query(statement, answered) : answered(null, NO_ROWS);
    }
    if (text !== COMMIT || deferred.length === 0) return sendAll(statement, answered);
    // After a failure the server skips COMMIT, which leaves the transaction open.
    return sendAll(statement, (error, result) =>
      error ? query(ROLLBACK, () => answered(error, undefined)) : answered(null, result),
    );
  };
  Object.assign(connection, { query: sendOrDefer });
}

/** Whether it is a text of one statement. A text of several statements, such as a migration, has no values; a cursor submits itself. */
function isSingle(statement: unknown): statement is SentStatement {
  const { text, values = [] } = typeof statement === 'string' ? { text: statement } : (statement as SentStatement);
  return text !== undefined && (values.length > 0 || !/;\s*\S/.test(text));
}

/** Methods of the driver's Query that are overridden below, which its types omit. */
type DriverQuery = {
  prepare(connection: pg.Connection): void;
  handleCommandComplete(message: unknown, connection: pg.Connection): void;
  handleError(error: Error, connection: pg.Connection): void;
};
const DriverQuery = pg.Query as unknown as new (statement: unknown) => DriverQuery;

/** A statement that is sent after others in one message: the server executes all of them before it answers. */
class QueryAfter extends DriverQuery {
  readonly #before: SentStatement[];

  constructor(before: readonly SentStatement[], statement: unknown) {
    super({ ...toConfig(statement), queryMode: 'extended' });
    this.#before = [...before];
  }

  override prepare(connection: pg.Connection): void {
    for (const statement of this.#before) new QueryWithoutSync(toConfig(statement)).prepare(connection);
    super.prepare(connection);
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#before.shift() === undefined) super.handleCommandComplete(message, connection);
  }

  override handleError(error: Error, connection: pg.Connection): void {
    const [failed] = this.#before;
    if (failed) error.message = `${failed.text.slice(0, 300)} - ${error.message}`;
    super.handleError(error, connection);
  }
}

/** A statement after which the server does not answer yet. */
class QueryWithoutSync extends DriverQuery {
  _getRows(connection: pg.Connection): void {
    connection.execute({ portal: '' }, true);
  }
}

function toConfig(statement: unknown): object {
  return typeof statement === 'string' ? { text: statement } : { ...(statement as object) };
}
