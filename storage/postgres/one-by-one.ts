/**
 * Statements of one connection, each sent when the one before it is answered: those who do the same side by side in a transaction
 * (storage/models/side-by-side.ts) ask at one time, and the driver is to refuse that (pg 9).
 */
import type pg from 'pg';

type Answered = (error: Error | null, result: unknown) => void;
type Query = (statement: unknown, answered?: Answered) => unknown;

export function oneByOne(connection: pg.Client): void {
  const query: Query = connection.query.bind(connection);
  const waiting: { statement: unknown; answered: Answered }[] = [];
  let isBusy = false;
  const start = (statement: unknown, answered: Answered) => {
    query(statement, (error, result) => {
      const next = waiting.shift();
      if (next) start(next.statement, next.answered);
      else isBusy = false;
      answered(error, result);
    });
  };
  const ask = (statement: unknown, answered: Answered) => {
    if (isBusy) return void waiting.push({ statement, answered });
    isBusy = true;
    start(statement, answered);
  };
  const asked: Query = (statement, answered) => {
    // What reads its rows bit by bit is a statement of its own kind, and nobody shares a connection with it.
    if (typeof (statement as { submit?: unknown }).submit === 'function') return query(statement, answered);
    if (answered) return ask(statement, answered);
    return new Promise((resolve, reject) =>
      ask(statement, (error, result) => (error ? reject(error) : resolve(result))),
    );
  };
  Object.assign(connection, { query: asked });
}
