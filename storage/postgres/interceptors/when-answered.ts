/** Callbacks for each statement of one connection, when it is sent and when it is answered. */
import type pg from 'pg';

export type AnswerCallback = (error: Error | null, result: unknown) => void;
type ObservedQuery = (statement: unknown, answered?: AnswerCallback) => unknown;

/**
 * The driver is called in two ways: by knex with a callback, by storage/log/stored-records.ts for a promise. The callback that
 * `sent` returns runs before the caller's; undefined for none.
 */
export function onAnswered(connection: pg.Client, sent: (statement: unknown) => AnswerCallback | undefined): void {
  const query: ObservedQuery = connection.query.bind(connection);
  const watched: ObservedQuery = (statement, answered) => {
    const ended = sent(statement);
    if (ended === undefined) return answered ? query(statement, answered) : query(statement);
    if (!answered)
      return (query(statement) as Promise<unknown>).then(
        (result) => {
          ended(null, result);
          return result;
        },
        (error: Error) => {
          ended(error, undefined);
          throw error;
        },
      );
    return query(statement, (error, result) => {
      ended(error, result);
      answered(error, result);
    });
  };
  Object.assign(connection, { query: watched });
}

export function readStatementText(statement: unknown): string {
  return typeof statement === 'string' ? statement : ((statement as { text?: string }).text ?? '');
}
