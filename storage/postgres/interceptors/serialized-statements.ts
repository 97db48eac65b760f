/**
 * Serializes the statements of one connection: each is sent after the previous one is answered. Units of a batched transaction
 * (storage/concurrency/batched.ts) send statements concurrently, which version 9 of the driver pg will refuse.
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
    // A cursor or stream submits itself, and its connection has no concurrent statements.
    if (typeof (statement as { submit?: unknown }).submit === 'function') return query(statement, answered);
    if (answered) return enqueue(statement, answered);
    return new Promise((resolve, reject) =>
      enqueue(statement, (error, result) => (error ? reject(error) : resolve(result))),
    );
  };
  Object.assign(connection, { query: serializedQuery });
}
