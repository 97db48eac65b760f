/** Callbacks for each statement of one connection, when it is sent and when it is answered. */
import type pg from 'pg';

export type AnswerCallback = (error: Error | null, result: unknown) => void;
type ObservedQuery = (statement: unknown, ...rest: unknown[]) => unknown;

/**
 * Calls `sent` for each statement of a connection. The callback that `sent` returns, if any, runs before that of the caller. A caller
 * passes its callback as the last argument, or none and awaits the promise.
 */
export function onAnswered(connection: pg.Client, sent: (statement: unknown) => AnswerCallback | undefined): void {
  const query: ObservedQuery = connection.query.bind(connection);
  const watched: ObservedQuery = (statement, ...rest) => {
    const ended = sent(statement);
    if (ended === undefined) return query(statement, ...rest);
    const answered = rest.at(-1) as AnswerCallback | undefined;
    if (typeof answered !== 'function')
      return (query(statement, ...rest) as Promise<unknown>).then(
        (result) => {
          ended(null, result);
          return result;
        },
        (error: Error) => {
          ended(error, undefined);
          throw error;
        },
      );
    const both: AnswerCallback = (error, result) => {
      ended(error, result);
      answered(error, result);
    };
    return query(statement, ...rest.slice(0, -1), both);
  };
  Object.assign(connection, { query: watched });
}

export function readStatementText(statement: unknown): string {
  return typeof statement === 'string' ? statement : ((statement as { text?: string }).text ?? '');
}
