/**
 * Statements of one connection, each sent when the one before it is answered: those who do the same side by side in a transaction
 * (storage/models/batched.ts) ask at one time, and the driver is to refuse that (pg 9).
 */
import type pg from 'pg';

type StatementCallback = (error: Error | null, result: unknown) => void;
type SerializedQuery = (statement: unknown, answered?: StatementCallback) => unknown;

export function serializeStatements(connection: pg.Client): void {
  const query: SerializedQuery = connection.query.bind(connection);
  const waiting: { statement: unknown; answered: StatementCallback }[] = [];
  let isBusy = false;
  const start = (statement: unknown, answered: StatementCallback) => {
    query(statement, (error, result) => {
      const next = waiting.shift();
      if (next) start(next.statement, next.answered);
      else isBusy = false;
      answered(error, result);
    });
  };
  const enqueue = (statement: unknown, answered: StatementCallback) => {
    if (isBusy) return void waiting.push({ statement, answered });
    isBusy = true;
    start(statement, answered);
  };
  const serializedQuery: SerializedQuery = (statement, answered) => {
    // What reads its rows bit by bit is a statement of its own kind, and nobody shares a connection with it.
    if (typeof (statement as { submit?: unknown }).submit === 'function') return query(statement, answered);
    if (answered) return enqueue(statement, answered);
    return new Promise((resolve, reject) =>
      enqueue(statement, (error, result) => (error ? reject(error) : resolve(result))),
    );
  };
  Object.assign(connection, { query: serializedQuery });
}
